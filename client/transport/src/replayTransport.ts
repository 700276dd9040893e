import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai';

import type { Recording, RecordingEntry } from './recording.js';

export interface ReplayTransportOptions {
  /** `recorded` takes as long as it took; `at-once` is the default. */
  pace?: 'recorded' | 'at-once';
}

type OutEntry = RecordingEntry & { direction: 'out' };
type SendOptions = Parameters<ChatTransport<UIMessage>['sendMessages']>[0];
type ResumeOptions = Parameters<ChatTransport<UIMessage>['reconnectToStream']>[0];

/**
 * Answers as was recorded: the first send with what the first recorded one was answered with, the second
 * with the second, whatever they say; resumes the same way, and with nothing once there are no more.
 */
export class ReplayTransport<
  Message extends UIMessage = UIMessage,
> implements ChatTransport<Message> {
  readonly resumeStreamIsReplay = true;
  readonly #recording: Recording;
  readonly #isPaced: boolean;
  #sends = 0;
  #resumes = 0;

  constructor(recording: Recording, { pace = 'at-once' }: ReplayTransportOptions = {}) {
    this.#recording = recording;
    this.#isPaced = pace === 'recorded';
  }

  async sendMessages({
    abortSignal,
  }: Pick<SendOptions, 'abortSignal'>): Promise<ReadableStream<UIMessageChunk>> {
    const request = this.#nth('send', this.#sends++);
    if (request === undefined) {
      throw new Error(`The recording has no answer to message ${this.#sends}.`);
    }
    return this.#replay(request, abortSignal);
  }

  async reconnectToStream({
    abortSignal,
  }: Pick<ResumeOptions, 'abortSignal'>): Promise<ReadableStream<UIMessageChunk> | null> {
    const request = this.#nth('resume', this.#resumes++);
    if (request === undefined) return null;
    const isNothing = this.#answers(request).some(({ type }) => type === 'no-active');
    return isNothing ? null : this.#replay(request, abortSignal);
  }

  /** Begins anew. */
  rewind(): void {
    this.#sends = this.#resumes = 0;
  }

  #nth(type: 'send' | 'resume', index: number): RecordingEntry | undefined {
    const { entries } = this.#recording;
    return entries.filter(entry => entry.direction === 'in' && entry.type === type)[index];
  }

  #answers({ request, chat }: RecordingEntry): OutEntry[] {
    const isAnswer = (entry: RecordingEntry): entry is OutEntry =>
      entry.direction === 'out' && entry.request === request && entry.chat === chat;
    return this.#recording.entries.filter(isAnswer);
  }

  #replay(asked: RecordingEntry, signal: AbortSignal | undefined): ReadableStream<UIMessageChunk> {
    const answers = this.#answers(asked).values();
    const began = Date.now();
    const isPaced = this.#isPaced;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const wait = (entry: OutEntry) =>
      new Promise<void>((resolve, reject) => {
        const due = (entry.at - asked.at) * 1000 - (Date.now() - began);
        timer = setTimeout(resolve, Math.max(0, due));
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      });
    return new ReadableStream<UIMessageChunk>(
      {
        async pull(controller) {
          // Until there is something that the chat gets.
          for (const entry of answers) {
            signal?.throwIfAborted();
            if (isPaced) await wait(entry);
            if (entry.type === 'chunk') return controller.enqueue(structuredClone(entry.chunk));
            if (entry.type === 'error') throw new Error(entry.errorText);
            if (entry.type === 'end') break;
          }
          controller.close();
        },
        cancel() {
          clearTimeout(timer);
        },
      },
      { highWaterMark: 0 },
    );
  }
}
