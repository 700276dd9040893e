// A page on `/live`, and the server at the other end of its sockets.

import { EnvelopeChatTransport, type EnvelopeChatTransportOptions } from 'adk-stream-client';

import { memorySockets, type MemorySocket } from './memorySocket.js';
import { settled } from './waiting.js';

export const DONE = 'data: [DONE]\n\n';
export const PONG = '{"type":"pong","version":"1.0"}';

/** What the server says instead of doing something. */
export const refused = (message: string, toolCallId?: string): string =>
  JSON.stringify({ type: 'refused', version: '1.0', code: 'conflict', message, toolCallId });

export class EnvelopePage {
  readonly active: string[] = [];
  readonly errors: string[] = [];
  readonly transport: EnvelopeChatTransport;
  readonly opened: MemorySocket[];

  constructor(options: Partial<EnvelopeChatTransportOptions> = {}) {
    const { Socket, opened } = memorySockets();
    this.opened = opened;
    this.transport = new EnvelopeChatTransport({
      url: 'https://example.test/live',
      webSocket: Socket,
      settleMs: 0,
      onActive: chatId => this.active.push(chatId),
      onError: (_, error) => this.errors.push(error.message),
      ...options,
    });
  }

  /** The newest socket, open. */
  async socket(): Promise<MemorySocket> {
    await settled();
    const socket = this.opened.at(-1)!;
    if (socket.readyState === 0) socket.open();
    await settled();
    return socket;
  }

  send(text = 'pay 5', fields: object = {}): Promise<ReadableStream<any>> {
    const messages = [
      { id: 'm0', role: 'user' as const, parts: [{ type: 'text' as const, text: 'hi' }] },
      { id: 'm1', role: 'user' as const, parts: [{ type: 'text' as const, text }] },
    ];
    return this.transport.sendMessages({
      chatId: 'c1',
      messages,
      trigger: 'submit-message',
      messageId: undefined,
      abortSignal: undefined,
      ...fields,
    });
  }

  resume(fields: object = {}): Promise<ReadableStream<any> | null> {
    return this.transport.reconnectToStream({ chatId: 'c1', ...fields });
  }
}

/** Chunks as the server frames them. */
export const frames = (chunks: object[]): string[] =>
  chunks.map(chunk => `data: ${JSON.stringify(chunk)}\n\n`);

export async function read(stream: ReadableStream<any> | null): Promise<any[]> {
  const chunks = [];
  for await (const chunk of stream as unknown as AsyncIterable<any>) chunks.push(chunk);
  return chunks;
}

export const types = (chunks: any[]): string[] => chunks.map(chunk => chunk.type);
