import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai';

import { EnvelopeLine } from './envelopeLine.js';
import type { Turn } from './envelopeTurn.js';
import { openSocket, type SocketOptions } from './socketAddress.js';
import { isSettled, lastStepOf } from './toolParts.js';

export interface EnvelopeChatTransportOptions extends SocketOptions {
  /**
   * Called when a turn begins in a chat that no `sendMessages` asked for: words that were spoken, another
   * tab, a decision from elsewhere, a recovery. `resumeStream()` shows it, from its beginning.
   */
  onActive?: (chatId: string) => void;
  /** Called for each chunk that comes, also of turns that nobody reads. */
  onPart?: (chatId: string, chunk: UIMessageChunk) => void;
  /** Called when the server refuses an answer, or something that no promise stands for. */
  onError?: (chatId: string, error: Error) => void;
  /** How long `reconnectToStream` waits, once there is a socket, for a turn to come; 500 unless given. */
  settleMs?: number;
}

/** What came of a tool call. */
export interface ToolResult {
  chatId: string;
  /** As the server named the call: that of a confirmation is not that of the call it asks for. */
  toolCallId: string;
  toolName?: string | undefined;
  /** Its output, or the decision. */
  result?: unknown;
  /** Why the browser could not run it, instead of a result; needs the name of the tool. */
  errorText?: string | undefined;
}

type SendOptions<Message extends UIMessage> = Parameters<ChatTransport<Message>['sendMessages']>[0];
type ResumeOptions = Parameters<ChatTransport<UIMessage>['reconnectToStream']>[0];

/** How many sockets may stay open for chats in which nothing happens. */
const IDLE_LINES = 6;

/**
 * Chats over `WS /live` in envelopes of version 1.0: a socket for each chat, one stream for each turn.
 *
 * A socket is opened by the first use of its chat, and by the next one after it was lost, which fails the
 * replies that it was bringing; `resumeStream()` brings them from their beginning. While a call waits for
 * a person or the browser, the stream of its turn stays open: answer with `sendToolResult`.
 */
export class EnvelopeChatTransport<
  Message extends UIMessage = UIMessage,
> implements ChatTransport<Message> {
  readonly resumeStreamIsReplay = true;
  readonly #options: EnvelopeChatTransportOptions;
  // By chat, the one that was used last at the end.
  readonly #lines = new Map<string, EnvelopeLine>();
  // Calls whose result the server has, as far as is known here.
  readonly #answered = new Set<string>();

  constructor(options: EnvelopeChatTransportOptions) {
    this.#options = options;
  }

  async sendMessages(options: SendOptions<Message>): Promise<ReadableStream<UIMessageChunk>> {
    const { chatId, messages, trigger, messageId, abortSignal } = options;
    abortSignal?.throwIfAborted();
    // An answer to an earlier message goes on with that one.
    const last = messages.find(({ id }) => id === messageId) ?? messages.at(-1);
    const isContinued = last?.role === 'assistant' && trigger === 'submit-message';
    // A chat that sends by itself when a turn ends may have nothing to say that was not said before.
    if (isContinued && this.#wasAnswered(last))
      return new ReadableStream({ start: c => c.close() });
    const data = { id: chatId, messages: last === undefined ? [] : [last], trigger, messageId };
    // Not named by its address: what waits in the chat is in `messages` already.
    const line = this.#line(chatId, false);
    return new Promise((resolve, reject) => {
      abortSignal?.addEventListener('abort', () => reject(abortSignal.reason));
      const begin = (turn: Turn) => {
        if (!abortSignal?.aborted) resolve(turn.read('here', abortSignal));
      };
      line.say(data, begin, isContinued ? last.id : undefined).catch(reject);
    });
  }

  async reconnectToStream(options: ResumeOptions): Promise<ReadableStream<UIMessageChunk> | null> {
    const { chatId, abortSignal } = options;
    abortSignal?.throwIfAborted();
    const turn = await this.#line(chatId, true).resume();
    abortSignal?.throwIfAborted();
    return turn === undefined ? null : turn.read('beginning', abortSignal);
  }

  /** Says something; `onActive` tells when the reply begins. Resolves then, too. */
  async sendMessage(chatId: string, message: string | Message): Promise<void> {
    const said =
      typeof message === 'string'
        ? { id: messageId(), role: 'user', parts: [{ type: 'text', text: message }] }
        : message;
    const begin = () => this.#options.onActive?.(chatId);
    await this.#line(chatId, false).say({ id: chatId, messages: [said] }, begin);
  }

  /**
   * Sends what came of a call; resolves when the server goes on with it, and rejects if it refuses it or
   * the socket is lost before. The promise may be left alone: `onError` is called as well.
   */
  sendToolResult(result: ToolResult): Promise<void> {
    const { chatId, toolCallId } = result;
    this.#answered.add(toolCallId);
    const sent = this.#line(chatId, true).answer(toolCallId, ...envelopeOf(result));
    sent.catch((error: unknown) => {
      this.#answered.delete(toolCallId);
      this.#options.onError?.(chatId, error instanceof Error ? error : new Error(String(error)));
    });
    return sent;
  }

  /** Whether a call waits in a turn that somebody reads: then its answer belongs here, and not into a message. */
  canAnswer(chatId: string, toolCallId: string): boolean {
    return this.#lines.get(chatId)?.awaits(toolCallId) === true;
  }

  /**
   * Resolves when the server lets the browser run a call, to true, or when that cannot come any more, to
   * false. Undefined if no turn that is open here has the call.
   */
  mayRun(chatId: string, toolCallId: string): Promise<boolean> | undefined {
    return this.#lines.get(chatId)?.mayRun(toolCallId);
  }

  /** Stops the reply that runs, or gives up what waits. */
  interrupt(chatId: string): void {
    this.#line(chatId, true).interrupt();
  }

  /** Closes all sockets, which fails what comes over them; the next use opens another. */
  close(): void {
    this.#lines.forEach(line => line.close());
    this.#lines.clear();
  }

  #line(chatId: string, isNamed: boolean): EnvelopeLine {
    const known = this.#lines.get(chatId);
    const line = known?.isUsable ? known : this.#open(chatId, isNamed);
    this.#lines.delete(chatId);
    this.#lines.set(chatId, line);
    return line;
  }

  #open(chatId: string, isNamed: boolean): EnvelopeLine {
    const idle = [...this.#lines].filter(([, line]) => !line.isUsable || line.isIdle);
    for (const [id, line] of idle.slice(0, Math.max(0, idle.length - IDLE_LINES + 1))) {
      line.close();
      this.#lines.delete(id);
    }
    const { onActive, onPart, onError, settleMs = 500 } = this.#options;
    return new EnvelopeLine({
      open: () => openSocket(this.#options, isNamed ? { chat: chatId } : {}),
      events: {
        onActive: () => onActive?.(chatId),
        onChunk: chunk => onPart?.(chatId, chunk),
        onRefused: error => onError?.(chatId, error),
      },
      isNamed,
      settleMs,
    });
  }

  // Once only: who asks again is told by the server what is wrong.
  #wasAnswered(message: Message): boolean {
    const answers = lastStepOf(message).filter(
      part =>
        part.providerExecuted !== true && (isSettled(part) || part.state === 'approval-responded'),
    );
    const ids = answers.map(part => part.toolCallId);
    const isKnown = ids.length > 0 && ids.every(id => this.#answered.has(id));
    if (isKnown) ids.forEach(id => this.#answered.delete(id));
    return isKnown;
  }
}

function envelopeOf(answer: ToolResult): ['tool_result' | 'message', object] {
  const { chatId, toolCallId, toolName, result, errorText } = answer;
  if (errorText === undefined) {
    return ['tool_result', { toolCallId, toolName, result: result ?? null }];
  }
  // A `tool_result` cannot say that a tool failed; a part can.
  const part = {
    type: `tool-${toolName}`,
    toolCallId,
    state: 'output-error',
    input: {},
    errorText,
  };
  const message = { id: messageId(), role: 'assistant', parts: [part] };
  return ['message', { id: chatId, messages: [message] }];
}

// Not a UUID: browsers give none to a page that came over plain HTTP.
function messageId(): string {
  return Array.from({ length: 16 }, () => Math.floor(Math.random() * 36).toString(36)).join('');
}
