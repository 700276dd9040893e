import type { UIMessageChunk } from 'ai';

import { CONFIRMATION_TOOL, confirmedCallOf, isYes } from './toolParts.js';

/** A tool call of a turn. */
interface Call {
  /** The confirmation that asks the person for it; undefined if none does, or not yet. */
  confirmation: string | undefined;
  /** What the server said of it; undefined before that. */
  output: { value: unknown } | undefined;
}

/** Somebody who waits for the server to let the browser run a call. */
interface Waiter {
  callId: string;
  tell: (may: boolean) => void;
}

type Controller = ReadableStreamDefaultController<UIMessageChunk>;

/**
 * One turn as it is told, kept from its beginning: who comes later reads it from there.
 *
 * A turn that waits for a person has several replies, which all begin with `start` and end before the
 * turn does. Its readers get them as one.
 */
export class Turn {
  /** Whether a reply is being told; else it waits, or is over. */
  isTelling = false;
  /** Whether somebody reads it, or read it to its end. */
  wasRead = false;
  readonly #chunks: UIMessageChunk[] = [];
  readonly #calls = new Map<string, Call>();
  // There is one reader at most: a chat. Undefined without one.
  #reader: Controller | undefined;
  #waiters: Waiter[] = [];
  // How it ended; undefined while it goes on.
  #end: { error?: unknown } | undefined;

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  get isRead(): boolean {
    return this.#reader !== undefined;
  }

  /** Whether a call of it has no output yet. */
  awaits(callId: string): boolean {
    const call = this.#calls.get(callId);
    return !this.isOver && call !== undefined && call.output === undefined;
  }

  /** Whether it has a call. */
  has(callId: string): boolean {
    return this.#calls.has(callId);
  }

  take(chunk: UIMessageChunk): void {
    const isRepeated = chunk.type === 'start' && this.#chunks.length > 0;
    const told = isRepeated ? continued(chunk) : chunk;
    if (chunk.type === 'start') this.isTelling = true;
    if (told !== undefined) {
      this.#chunks.push(told);
      this.#reader?.enqueue(told);
    }
    this.#note(chunk);
  }

  /** Gives the turn to a reader, from its beginning or from here; who read it before has its end. */
  read(
    from: 'beginning' | 'here',
    signal: AbortSignal | undefined,
  ): ReadableStream<UIMessageChunk> {
    this.wasRead = true;
    this.#reader?.close();
    this.#reader = undefined;
    let reader: Controller;
    const leave = () => {
      if (this.#reader !== reader) return;
      this.#reader = undefined;
      this.wasRead = false;
    };
    // Its queue has no bound, as the socket cannot be told to wait: a turn is kept as a whole anyway.
    const stream = new ReadableStream<UIMessageChunk>({
      start: controller => {
        reader = controller;
        if (from === 'beginning') this.#chunks.forEach(chunk => controller.enqueue(chunk));
        if (this.#end === undefined) this.#reader = controller;
        else if ('error' in this.#end) controller.error(this.#end.error);
        else controller.close();
      },
      cancel: leave,
    });
    signal?.addEventListener('abort', () => {
      if (this.#reader === reader) reader.error(signal.reason);
      leave();
    });
    return stream;
  }

  /** Resolves when the server lets the browser run a call: true; or when that cannot come any more: false. */
  mayRun(callId: string): Promise<boolean> {
    return new Promise(tell => {
      this.#waiters.push({ callId, tell });
      this.#tellWaiters();
    });
  }

  end(): void {
    this.#reader?.close();
    this.#finish({});
  }

  fail(error: unknown): void {
    this.#reader?.error(error);
    this.#finish({ error });
  }

  #finish(end: { error?: unknown }): void {
    this.#reader = undefined;
    this.#end ??= end;
    this.isTelling = false;
    this.#tellWaiters();
  }

  #note(chunk: UIMessageChunk): void {
    switch (chunk.type) {
      case 'tool-input-available': {
        const { toolCallId, toolName, input } = chunk;
        // Asked again: an approval that others must give, too.
        const confirmation = this.#calls.get(toolCallId)?.confirmation;
        this.#calls.set(toolCallId, { confirmation, output: undefined });
        const about = toolName === CONFIRMATION_TOOL ? confirmedCallOf(input) : undefined;
        const call = about === undefined ? undefined : this.#calls.get(about);
        if (call !== undefined) call.confirmation = toolCallId;
        break;
      }
      case 'tool-output-available':
      case 'tool-output-error': {
        const call = this.#calls.get(chunk.toolCallId);
        const value = chunk.type === 'tool-output-available' ? chunk.output : undefined;
        if (call !== undefined) call.output = { value };
        break;
      }
      case 'finish':
      case 'abort':
      case 'error':
        this.isTelling = false;
        break;
    }
    if (!this.isTelling) this.#tellWaiters();
  }

  #tellWaiters(): void {
    this.#waiters = this.#waiters.filter(({ callId, tell }) => {
      const may = this.#permission(callId);
      if (may !== undefined) tell(may);
      return may === undefined;
    });
  }

  // While a reply is told, the question whether a call may run can still follow the call.
  #permission(callId: string): boolean | undefined {
    if (!this.awaits(callId)) return false;
    if (this.isTelling) return undefined;
    const confirmation = this.#calls.get(callId)?.confirmation;
    if (confirmation === undefined) return true;
    const answer = this.#calls.get(confirmation)?.output;
    if (answer === undefined) return undefined;
    return isYes(answer.value);
  }
}

// ai 7.0.135 to 7.0.137 drop what they have of a message at each `start` of a stream.
function continued(chunk: UIMessageChunk): UIMessageChunk | undefined {
  if (chunk.type !== 'start' || chunk.messageMetadata === undefined) return undefined;
  return { type: 'message-metadata', messageMetadata: chunk.messageMetadata };
}
