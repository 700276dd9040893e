import type { UIMessageChunk } from 'ai';

import type { ReplyFrame } from './frames.js';

/** The stream of what one request is answered with. */
export class Reply {
  /** The stream, once the server has begun to answer; null if there is nothing to resume. */
  readonly begun: Promise<ReadableStream<UIMessageChunk> | null>;
  #controller!: ReadableStreamDefaultController<UIMessageChunk>;
  #begin!: (stream: ReadableStream<UIMessageChunk> | null) => void;
  #refuse!: (error: unknown) => void;
  readonly #stream: ReadableStream<UIMessageChunk>;
  // The sequence of the chunk that is due.
  #due = 0;

  constructor(onCancel: () => void) {
    // Its queue has no bound, as the socket cannot be told to wait: a reply is kept as a whole anyway.
    this.#stream = new ReadableStream({
      start: controller => {
        this.#controller = controller;
      },
      cancel: onCancel,
    });
    this.begun = new Promise((resolve, reject) => {
      this.#begin = resolve;
      this.#refuse = reject;
    });
  }

  /** Takes the next frame and says whether it was the last; throws if it cannot be the next. */
  take(frame: ReplyFrame): boolean {
    switch (frame.type) {
      case 'start':
        this.#begin(this.#stream);
        return false;
      case 'chunk':
        if (frame.sequence !== this.#due) {
          throw new Error(`Chunk ${frame.sequence} of the reply came when ${this.#due} was due.`);
        }
        this.#due += 1;
        this.#begin(this.#stream);
        this.#controller.enqueue(frame.chunk);
        return false;
      case 'end':
        this.#begin(this.#stream);
        this.#controller.close();
        return true;
      case 'no-active':
        this.#begin(null);
        this.#controller.close();
        return true;
      case 'error':
        this.fail(new Error(frame.errorText ?? 'The server could not answer.'));
        return true;
      case 'malformed':
        throw new Error('A frame of the reply cannot be read.');
    }
  }

  fail(error: unknown): void {
    this.#refuse(error);
    this.#controller.error(error);
  }
}
