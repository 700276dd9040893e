import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai';

import { Connection } from './connection.js';
import type { Trigger } from './frames.js';
import { openSocket, type SocketOptions } from './socketAddress.js';

/** What a chat wants to send. */
export interface SendRequest<Message extends UIMessage> {
  id: string;
  messages: Message[];
  trigger: Trigger;
  messageId: string | undefined;
  headers: Record<string, string>;
  body: object;
  requestMetadata: unknown;
}

/** What is sent instead. */
export type PreparedRequest<Message extends UIMessage> = Partial<
  Pick<SendRequest<Message>, 'messages' | 'headers' | 'body'>
>;

/** As far as they go, those of `WebSocketChatTransport` of ai 7. */
export interface SocketChatTransportOptions<Message extends UIMessage> extends SocketOptions {
  /** Called before each send, to send less: the server keeps the history. */
  prepareSendMessagesRequest?: (
    request: SendRequest<Message>,
  ) => PreparedRequest<Message> | PromiseLike<PreparedRequest<Message>>;
  /**
   * What `stop()` of a chat does: `stop` its reply on the server, as `WebSocketChatTransport` does, or
   * `leave` it running and only listen no more, for pages that have a button for the stop route. By
   * default `stop`.
   */
  onAbort?: 'stop' | 'leave';
  /** Called when a turn that this page did not ask for begins in a chat: `resumeStream()` shows it. */
  onActive?: (chatId: string) => void;
}

type SendOptions<Message extends UIMessage> = Parameters<ChatTransport<Message>['sendMessages']>[0];
type ResumeOptions = Parameters<ChatTransport<UIMessage>['reconnectToStream']>[0];

/**
 * Chats over one WebSocket, for `useChat` of ai 6, in the frames of `WebSocketChatTransport` of ai 7.
 *
 * The socket is opened by the first request, and by the next one after it was lost. A lost socket fails
 * the replies that it was bringing; `resumeStream()` brings them from their beginning.
 */
export class SocketChatTransport<
  Message extends UIMessage = UIMessage,
> implements ChatTransport<Message> {
  readonly resumeStreamIsReplay = true;
  readonly #options: SocketChatTransportOptions<Message>;
  // The newest. Undefined before the first request, and once closed.
  #connection: Connection | undefined;
  #requests = 0;

  constructor(options: SocketChatTransportOptions<Message>) {
    this.#options = options;
  }

  async sendMessages(options: SendOptions<Message>): Promise<ReadableStream<UIMessageChunk>> {
    const { chatId: id, messages, trigger, messageId, abortSignal, metadata } = options;
    const asked = { id, messages, trigger, messageId, ...extrasOf(options) };
    const prepare = this.#options.prepareSendMessagesRequest;
    const prepared = await prepare?.({ ...asked, requestMetadata: metadata });
    abortSignal?.throwIfAborted();
    const stream = await this.#connected().ask(
      {
        ...asked,
        type: 'send',
        requestId: this.#nextRequestId(),
        messages: prepared?.messages ?? messages,
        headers: prepared?.headers ?? asked.headers,
        body: prepared?.body ?? asked.body,
        metadata,
      },
      abortSignal,
    );
    if (stream === null) throw new Error('The server answered a message as if it were a resume.');
    return stream;
  }

  async reconnectToStream(options: ResumeOptions): Promise<ReadableStream<UIMessageChunk> | null> {
    const { chatId: id, abortSignal, metadata } = options;
    abortSignal?.throwIfAborted();
    const requestId = this.#nextRequestId();
    return this.#connected().ask(
      { type: 'resume', requestId, id, ...extrasOf(options), metadata },
      abortSignal,
    );
  }

  /** Closes the socket, which fails what comes over it; the next request opens another. */
  close(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }

  // Not a UUID: browsers give none to a page that came over plain HTTP.
  #nextRequestId(): string {
    this.#requests += 1;
    return `${this.#requests}`;
  }

  #connected(): Connection {
    if (!this.#connection?.isUsable) {
      const { onActive = () => {} } = this.#options;
      this.#connection = new Connection(() => openSocket(this.#options), {
        onActive,
        stops: this.#options.onAbort !== 'leave',
      });
    }
    return this.#connection;
  }
}

function extrasOf({ headers, body = {} }: Pick<ResumeOptions, 'headers' | 'body'>) {
  return { headers: Object.fromEntries(new Headers(headers)), body };
}
