import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai';

import type { ToolResult } from './envelopeTransport.js';
import type { EntryPlace, Recorder } from './recorder.js';

type SendOptions = Parameters<ChatTransport<UIMessage>['sendMessages']>[0];
type ResumeOptions = Parameters<ChatTransport<UIMessage>['reconnectToStream']>[0];
type Method = (...given: any[]) => unknown;

/**
 * A transport that does what another does, and lets a recorder keep it.
 *
 * Everything else the other has is there as well: `sendToolResult`, `sendMessage` and `interrupt` are
 * kept, too. Hints are not seen here: `recorder.out({ chat }, { type: 'active' })` in `onActive` keeps them.
 */
export function recordingTransport<Transport extends ChatTransport<any>>(
  transport: Transport,
  recorder: Recorder,
): Transport {
  const kept = keptMethods(transport, recorder);
  return new Proxy(transport, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== 'function') return value;
      const method = typeof key === 'string' && Object.hasOwn(kept, key) ? kept[key] : undefined;
      // Bound: the private fields of a class are not those of a proxy.
      return method ?? (value as Method).bind(target);
    },
  });
}

function keptMethods(transport: ChatTransport<any>, recorder: Recorder): Record<string, Method> {
  const other = transport as unknown as Record<string, Method>;
  const pass = (name: string, ...given: unknown[]) => other[name]?.apply(transport, given);
  return {
    sendMessages: async (options: SendOptions) => {
      const place = { chat: options.chatId, request: recorder.nextRequest() };
      const { trigger, messageId, messages } = options;
      const named = messageId === undefined ? {} : { messageId };
      recorder.in(place, { type: 'send', trigger, ...named, messages: messages.slice(-1) });
      const stream = await keepingRefusal(recorder, place, () => transport.sendMessages(options));
      return keeping(stream, recorder, place);
    },
    reconnectToStream: async (options: ResumeOptions) => {
      const place = { chat: options.chatId, request: recorder.nextRequest() };
      recorder.in(place, { type: 'resume' });
      const stream = await keepingRefusal(recorder, place, () =>
        transport.reconnectToStream(options),
      );
      if (stream !== null) return keeping(stream, recorder, place);
      recorder.out(place, { type: 'no-active' });
      return null;
    },
    sendToolResult: (result: ToolResult) => {
      const { chatId: chat, ...data } = result;
      recorder.in({ chat, request: recorder.nextRequest() }, { type: 'tool_result', data });
      return pass('sendToolResult', result);
    },
    sendMessage: (chat: string, message: string | UIMessage) => {
      const said = typeof message === 'string' ? { role: 'user', content: message } : message;
      recorder.in({ chat, request: recorder.nextRequest() }, { type: 'send', messages: [said] });
      return pass('sendMessage', chat, message);
    },
    interrupt: (chat: string) => {
      recorder.in({ chat, request: recorder.nextRequest() }, { type: 'stop' });
      return pass('interrupt', chat);
    },
  };
}

async function keepingRefusal<Result>(
  recorder: Recorder,
  place: EntryPlace,
  ask: () => Promise<Result>,
): Promise<Result> {
  try {
    return await ask();
  } catch (error) {
    recorder.out(place, { type: 'error', errorText: textOf(error) });
    throw error;
  }
}

function keeping(
  stream: ReadableStream<UIMessageChunk>,
  recorder: Recorder,
  place: EntryPlace,
): ReadableStream<UIMessageChunk> {
  recorder.out(place, { type: 'start' });
  const reader = stream.getReader();
  return new ReadableStream<UIMessageChunk>(
    {
      async pull(controller) {
        try {
          const { value, done } = await reader.read();
          if (done) {
            recorder.out(place, { type: 'end' });
            controller.close();
          } else {
            recorder.out(place, { type: 'chunk', chunk: value });
            controller.enqueue(value);
          }
        } catch (error) {
          recorder.out(place, { type: 'error', errorText: textOf(error) });
          controller.error(error);
        }
      },
      cancel(reason) {
        recorder.in(place, { type: 'abort' });
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
