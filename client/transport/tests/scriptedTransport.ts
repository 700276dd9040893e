// A transport that answers the first send with the first reply, the second with the second, and then with
// the last one again: what a server does that gets the same thing again and again.

import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai';

const MOST = 12;

export class ScriptedTransport implements ChatTransport<UIMessage> {
  readonly sends: any[] = [];
  readonly #replies: object[][];

  constructor(...replies: object[][]) {
    this.#replies = replies;
  }

  async sendMessages(options: any): Promise<ReadableStream<UIMessageChunk>> {
    if (this.sends.length >= MOST) throw new Error('endless resubmission');
    this.sends.push(structuredClone({ messageId: options.messageId, messages: options.messages }));
    const chunks = this.#replies[Math.min(this.sends.length, this.#replies.length) - 1] ?? [];
    return new ReadableStream({
      start(controller) {
        chunks.forEach(chunk => controller.enqueue(chunk as UIMessageChunk));
        controller.close();
      },
    });
  }

  async reconnectToStream(): Promise<null> {
    return null;
  }
}
