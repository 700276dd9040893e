import type { UIMessage, UIMessageChunk } from 'ai';

import { readFrame, type AbortFrame, type ResumeFrame, type SendFrame } from './frames.js';
import { Reply } from './reply.js';

/** What is used of a WebSocket; those of browsers, of Node and of `ws` fit. */
export interface SocketLike {
  readonly readyState: number;
  onopen: ((event: never) => unknown) | null;
  onmessage: ((event: never) => unknown) | null;
  onerror: ((event: never) => unknown) | null;
  onclose: ((event: never) => unknown) | null;
  send(text: string): void;
  close(code?: number, reason?: string): void;
}

export type SocketClass = new (url: string, protocols?: string | string[]) => SocketLike;

/** A request that has not ended. */
interface Asked {
  reply: Reply;
  /** What is to be sent when the socket opens; undefined once it was. */
  unsent: string | undefined;
  /** Stops listening to the signal that aborts it. */
  release: () => void;
}

const OPEN = 1;
// A page may close a socket with 1000, and with 3000 to 4999, and with nothing else.
const NORMAL = 1000;
const UNREADABLE = 4400;

/**
 * One WebSocket and the requests on it, until it is lost; it is not opened again.
 *
 * Losing it fails them all, with an error that a chat takes for a lost network.
 */
export class Connection {
  readonly #onActive: (chatId: string) => void;
  readonly #stops: boolean;
  readonly #asked = new Map<string, Asked>();
  // Undefined until there is one.
  #socket: SocketLike | undefined;
  #isLost = false;

  /** With `stops`, what is aborted is stopped on the server, too. */
  constructor(
    open: () => Promise<SocketLike>,
    { onActive, stops }: { onActive: (chatId: string) => void; stops: boolean },
  ) {
    this.#onActive = onActive;
    this.#stops = stops;
    open().then(
      socket => this.#serve(socket),
      (error: unknown) => this.#lose(error),
    );
  }

  /** Whether it can be asked: it is open, or will be. */
  get isUsable(): boolean {
    return !this.#isLost && (this.#socket?.readyState ?? OPEN) <= OPEN;
  }

  /** Sends a request; resolves when its reply begins, to null if there is nothing to resume. */
  ask<Message extends UIMessage>(
    frame: SendFrame<Message> | ResumeFrame,
    signal: AbortSignal | undefined,
  ): Promise<ReadableStream<UIMessageChunk> | null> {
    const { requestId } = frame;
    const text = JSON.stringify(frame);
    const reply = new Reply(() => this.#leave(requestId));
    const abort = () => {
      this.#leave(requestId, this.#stops);
      reply.fail(signal?.reason);
    };
    signal?.addEventListener('abort', abort);
    const release = () => signal?.removeEventListener('abort', abort);
    const isOpen = this.#socket?.readyState === OPEN;
    this.#asked.set(requestId, { reply, unsent: isOpen ? undefined : text, release });
    if (isOpen) this.#socket?.send(text);
    return reply.begun;
  }

  close(): void {
    this.#lose(new Error('The chat transport was closed.'));
    this.#socket?.close(NORMAL);
  }

  #serve(socket: SocketLike): void {
    this.#socket = socket;
    let wasOpen = false;
    socket.onopen = () => {
      wasOpen = true;
      for (const asked of this.#asked.values()) {
        if (asked.unsent !== undefined) socket.send(asked.unsent);
        asked.unsent = undefined;
      }
    };
    socket.onmessage = ({ data }: { data: unknown }) => this.#take(data);
    // What follows is a close, which knows more. Without a listener, `ws` would throw the error.
    socket.onerror = () => {};
    socket.onclose = ({ code }: { code: number }) => {
      const what = wasOpen ? 'was lost' : 'could not be opened';
      // `useChat` knows a lost network by a TypeError with that word.
      this.#lose(new TypeError(`The network connection of the chat ${what} (${code}).`));
    };
    // Closed before there was anything to close.
    if (this.#isLost) socket.close(NORMAL);
  }

  #take(data: unknown): void {
    const frame = readFrame(data);
    if (frame === undefined) {
      // Whoever it was for would wait for ever: all begin anew.
      this.#lose(new TypeError('The network connection of the chat brought what cannot be read.'));
      this.#socket?.close(UNREADABLE);
      return;
    }
    if (frame.type === 'active') return this.#onActive(frame.id);
    // Undefined for one that was left, while this was on its way.
    const reply = this.#asked.get(frame.requestId)?.reply;
    try {
      if (reply?.take(frame)) this.#forget(frame.requestId);
    } catch (error) {
      this.#leave(frame.requestId);
      reply?.fail(error);
    }
  }

  /** Ends the listening to a reply; its turn goes on, unless it is to be stopped. */
  #leave(requestId: string, stops = false): void {
    this.#forget(requestId);
    const frame: AbortFrame = { type: 'abort', requestId, ...(!stops && { leave: true }) };
    // Before it is open, nothing was sent that could be aborted.
    if (this.#socket?.readyState === OPEN) this.#socket.send(JSON.stringify(frame));
  }

  #forget(requestId: string): void {
    this.#asked.get(requestId)?.release();
    this.#asked.delete(requestId);
  }

  #lose(error: unknown): void {
    this.#isLost = true;
    for (const [requestId, { reply }] of this.#asked) {
      this.#forget(requestId);
      reply.fail(error);
    }
  }
}
