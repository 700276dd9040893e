// Not run: it is checked against the types of ai 6, and again against those of ai 7.

import type {
  AbstractChat,
  ChatTransport,
  InferUITools,
  ToolSet,
  UIDataTypes,
  UIMessage,
} from 'ai';

import {
  BrowserTools,
  changeBgm,
  EnvelopeChatTransport,
  getLocation,
  handleConfirmation,
  parseRecording,
  Recorder,
  recordingTransport,
  ReplayTransport,
  sendWhenAnswered,
  SocketChatTransport,
  Voice,
  type AnswerTransport,
  type ToolPart,
} from '../src/index.js';

type OwnMessage = UIMessage<
  { model: string },
  { approval: { status: string } },
  { process_payment: { input: { amount: number }; output: { paid: number } } }
>;
declare const chat: AbstractChat<UIMessage>;
declare const own: AbstractChat<OwnMessage>;
declare const tools: AbstractChat<UIMessage<unknown, UIDataTypes, InferUITools<ToolSet>>>;

// Every transport is one, for plain messages and for an application's own.
export const plain: ChatTransport<UIMessage>[] = [
  new EnvelopeChatTransport({ url: '/live', params: { a: '1' }, webSocket: WebSocket }),
  new SocketChatTransport({ url: '/api/chat/ws' }),
  new ReplayTransport(parseRecording('')),
  recordingTransport(new SocketChatTransport({ url: '/ws' }), new Recorder()),
];
export const typed: ChatTransport<OwnMessage>[] = [
  new EnvelopeChatTransport<OwnMessage>({ url: '/live' }),
  new SocketChatTransport<OwnMessage>({ url: '/api/chat/ws' }),
  new ReplayTransport<OwnMessage>(parseRecording('')),
];

// What a recorder wraps keeps its own methods.
const recorded = recordingTransport(new EnvelopeChatTransport({ url: '/live' }), new Recorder());
export const sent: Promise<void> = recorded.sendToolResult({
  chatId: 'c',
  toolCallId: 'x',
  result: 1,
});

// The functions of a chat fit as they are, and so do its parts.
export const answers: AnswerTransport[] = [
  { chatId: chat.id, websocket: recorded, ...chat },
  { addToolOutput: own.addToolOutput, addToolApprovalResponse: own.addToolApprovalResponse },
  { addToolOutput: tools.addToolOutput },
];
for (const message of [...chat.messages, ...own.messages]) {
  for (const part of message.parts) {
    if ('toolCallId' in part) {
      const asked: ToolPart = part;
      void handleConfirmation(asked, true, { ...own, chatId: own.id }, 'because');
      void handleConfirmation(part, false, answers[0]!);
    }
  }
}

const browserTools = new BrowserTools({
  tools: {
    get_location: getLocation(),
    change_bgm: changeBgm({ play: track => void track.length }),
    own: async (input: { a: number }, { toolCallId }) => toolCallId.repeat(input.a),
  },
  transport: () => ({ chatId: chat.id, ...chat }),
});
browserTools.look(chat.messages, chat.status);
browserTools.look(own.messages, own.status);

export const init: ConstructorParameters<
  typeof AbstractChat<OwnMessage>
>[0]['sendAutomaticallyWhen'] = sendWhenAnswered({ browserTools });
export const named: ConstructorParameters<typeof AbstractChat>[0]['sendAutomaticallyWhen'] =
  sendWhenAnswered({ browserTools: ['change_bgm'] });

export const state: 'closed' | 'opening' | 'listening' | 'talking' = new Voice({ chatId: 'c' })
  .state;

// @ts-expect-error An answer names its call.
void recorded.sendToolResult({ chatId: 'c', result: 1 });
// @ts-expect-error A status is needed: a call may still be asked for.
browserTools.look(chat.messages);
// @ts-expect-error An address is needed.
new EnvelopeChatTransport({});
