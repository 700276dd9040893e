import type { UIMessageChunk } from 'ai';

import type { SocketLike } from './connection.js';
import { readTold, writeEnvelope, type EnvelopeType, type Refusal } from './envelopeFrames.js';
import { Turn } from './envelopeTurn.js';

/** What the server was asked on a line, and has not begun to do. */
interface Asked {
  type: 'tool_result' | 'message';
  /** The call that is answered; undefined for a message. */
  callId: string | undefined;
  /** The message that the reply goes on with; undefined if it begins one. */
  continues: string | undefined;
  /** Gets the turn. */
  begin: (turn: Turn) => void;
  refuse: (error: unknown) => void;
}

export interface LineEvents {
  /** A turn began that nobody asked for here; `resume` gives it. */
  onActive: () => void;
  /** Something came. */
  onChunk: (chunk: UIMessageChunk) => void;
  /** The server refused something that nobody waits for. */
  onRefused: (error: Error) => void;
}

export interface LineOptions {
  open: () => Promise<SocketLike>;
  events: LineEvents;
  /** Whether the address names the chat, so that the server tells at once what runs or waits in it. */
  isNamed: boolean;
  /** How long after the socket is open the server may take to begin that. */
  settleMs: number;
}

const OPEN = 1;
// A page may close a socket with 1000, and with 3000 to 4999, and with nothing else.
const NORMAL = 1000;
const UNREADABLE = 4400;

/**
 * One socket of one chat and the turns that are told on it, until it is lost; it is not opened again.
 *
 * The server tells one reply after the other and does not say which request one answers. A reply of a
 * message that is known goes on with it; any other is the oldest message's that has none.
 */
export class EnvelopeLine {
  readonly #events: LineEvents;
  readonly #settleMs: number;
  // Undefined until there is one.
  #socket: SocketLike | undefined;
  #isLost = false;
  // What is to be sent when the socket opens.
  #unsent: string[] = [];
  readonly #asked: Asked[] = [];
  // Those that are not over, by message.
  readonly #turns = new Map<string, Turn>();
  // The one that was told of last. Undefined before the first.
  #turn: Turn | undefined;
  // How many wait for what runs in the chat: it is not news.
  #resuming = 0;
  // Resolves when it is known whether something runs or waits; rejects if the line is lost before.
  readonly #settled: Promise<void>;
  #settle!: () => void;
  #unsettle!: (error: unknown) => void;

  constructor({ open, events, isNamed, settleMs }: LineOptions) {
    this.#events = events;
    this.#settleMs = settleMs;
    this.#settled = new Promise((resolve, reject) => {
      this.#settle = resolve;
      this.#unsettle = reject;
    });
    // Nobody may wait for it.
    this.#settled.catch(() => {});
    if (isNamed) this.#write('ping');
    else this.#settle();
    open().then(
      socket => this.#serve(socket),
      (error: unknown) => this.#lose(error),
    );
  }

  /** Whether it can be asked: it is open, or will be. */
  get isUsable(): boolean {
    return !this.#isLost && (this.#socket?.readyState ?? OPEN) <= OPEN;
  }

  /** Whether nothing runs, waits or was asked. */
  get isIdle(): boolean {
    return this.#turns.size === 0 && this.#asked.length === 0 && this.#resuming === 0;
  }

  /** Sends a message; `begin` is called with its turn before the first chunk that answers it is taken. */
  async say(data: object, begin: (turn: Turn) => void, continues?: string): Promise<void> {
    // What is told when a socket opens must not be taken for the answer.
    await this.#settled;
    await new Promise<void>((resolve, refuse) => {
      const begun = (turn: Turn) => {
        begin(turn);
        resolve();
      };
      this.#asked.push({ type: 'message', callId: undefined, continues, begin: begun, refuse });
      this.#write('message', data);
    });
  }

  /** Sends what came of a call; resolves when the server goes on with it. */
  answer(callId: string, type: 'tool_result' | 'message', data: object): Promise<void> {
    return new Promise((resolve, refuse) => {
      this.#asked.push({ type, callId, continues: undefined, begin: () => resolve(), refuse });
      this.#write(type, data);
    });
  }

  interrupt(): void {
    this.#write('interrupt');
  }

  /** Resolves to what runs or waits, or ended without being read; undefined if there is no such turn. */
  async resume(): Promise<Turn | undefined> {
    this.#resuming += 1;
    try {
      await this.#settled;
    } finally {
      this.#resuming -= 1;
    }
    const turn = this.#turn;
    if (turn !== undefined && (!turn.isOver || !turn.wasRead)) return turn;
    return [...this.#turns.values()].at(-1);
  }

  /** Whether a call waits in a turn that somebody reads, so that what follows is seen. */
  awaits(callId: string): boolean {
    return this.isUsable && this.#turnOf(callId)?.isRead === true;
  }

  /** Resolves to whether the browser may run a call; undefined if no turn here has it. */
  mayRun(callId: string): Promise<boolean> | undefined {
    return this.#turnOf(callId)?.mayRun(callId);
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
      this.#unsent.splice(0).forEach(text => socket.send(text));
    };
    socket.onmessage = ({ data }: { data: unknown }) => this.#hear(data);
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

  #write(type: EnvelopeType, data?: object): void {
    const text = writeEnvelope(type, data);
    if (this.#socket?.readyState === OPEN) this.#socket.send(text);
    else this.#unsent.push(text);
  }

  #hear(data: unknown): void {
    if (this.#isLost) return;
    const told = readTold(data);
    if (told === undefined) {
      // Whichever turn it was of has a hole now: all begin anew.
      this.#lose(new TypeError('The network connection of the chat brought what cannot be read.'));
      this.#socket?.close(UNREADABLE);
      return;
    }
    switch (told.type) {
      case 'chunk':
        this.#events.onChunk(told.chunk);
        return this.#take(told.chunk);
      case 'done':
        return this.#end();
      case 'refused':
        return this.#refuse(told.refusal);
      case 'pong':
        // A pong overtakes the retelling, which needs the database.
        setTimeout(this.#settle, this.#settleMs);
    }
  }

  #take(chunk: UIMessageChunk): void {
    if (chunk.type === 'start') return this.#begin(chunk);
    const turn = this.#turn;
    if (chunk.type === 'error' && turn?.isTelling !== true) {
      // A reply that broke before it began.
      return this.#refuse({ message: chunk.errorText, toolCallId: undefined });
    }
    turn?.take(chunk);
    if (chunk.type === 'tool-output-available' || chunk.type === 'tool-output-error') {
      this.#acknowledge(asked => asked.callId === chunk.toolCallId, turn);
    }
  }

  #begin(chunk: UIMessageChunk & { type: 'start' }): void {
    const id = chunk.messageId ?? '';
    const known = this.#turns.get(id);
    const turn = known ?? new Turn();
    this.#turns.set(id, turn);
    this.#turn = turn;
    this.#acknowledge(({ callId }) => callId !== undefined && turn.awaits(callId), turn);
    const messages = this.#asked.filter(({ callId }) => callId === undefined);
    const asked =
      messages.find(({ continues }) => continues === id) ??
      // Nothing that was said goes on with a message that is known.
      (known ? undefined : (messages.find(each => each.continues === undefined) ?? messages[0]));
    if (asked !== undefined) this.#acknowledge(each => each === asked, turn);
    turn.take(chunk);
    const isNews = known === undefined && asked === undefined && this.#resuming === 0;
    this.#settle();
    if (isNews) this.#events.onActive();
  }

  #end(): void {
    const turn = this.#turn;
    if (turn === undefined || turn.isOver) return;
    for (const [id, each] of this.#turns) if (each === turn) this.#turns.delete(id);
    // An answer that was given again has no answer of its own.
    this.#acknowledge(({ callId }) => callId !== undefined && turn.has(callId), turn);
    turn.end();
  }

  #acknowledge(matches: (asked: Asked) => boolean, turn: Turn | undefined): void {
    for (const asked of this.#asked.filter(matches)) {
      this.#asked.splice(this.#asked.indexOf(asked), 1);
      if (turn !== undefined) asked.begin(turn);
    }
  }

  // The server does what it is asked in order: a message that it refuses is the oldest without a reply.
  #refuse({ message, toolCallId }: Refusal): void {
    const error = new Error(message);
    const index = this.#asked.findIndex(({ type, callId }) =>
      toolCallId === undefined ? type === 'message' : callId === toolCallId,
    );
    const [asked] = index < 0 ? [] : this.#asked.splice(index, 1);
    if (asked !== undefined) asked.refuse(error);
    else if (this.#resuming > 0) this.#unsettle(error);
    else this.#events.onRefused(error);
  }

  #turnOf(callId: string): Turn | undefined {
    return [...this.#turns.values()].find(turn => turn.awaits(callId));
  }

  #lose(error: unknown): void {
    this.#isLost = true;
    this.#unsettle(error);
    this.#asked.splice(0).forEach(({ refuse }) => refuse(error));
    this.#turns.forEach(turn => turn.fail(error));
    this.#turns.clear();
  }
}
