// The route that a request takes, by the mode and the profile that are chosen at its time. So a chat may
// change both between two requests, and a stream that is open goes on where it is.

import {
  EnvelopeChatTransport,
  recordingTransport,
  SocketChatTransport,
  type Recorder,
} from 'adk-stream-client';
import { DefaultChatTransport, type ChatTransport, type UIMessage } from 'ai';

import { currentPrefs, type Mode, type Profile } from '../app/prefs.ts';
import { fetchReply } from '../server/api.ts';

type Send = Parameters<ChatTransport<UIMessage>['sendMessages']>[0];
type Resume = Parameters<ChatTransport<UIMessage>['reconnectToStream']>[0];
type RouteName = `${Mode} ${Profile}`;

/** Returns the one message that the server reads: it keeps the others itself. */
function newest({ messages, messageId }: { messages: UIMessage[]; messageId?: string | undefined }) {
  const continued = messages.find(({ id, role }) => id === messageId && role === 'assistant');
  const sent = continued ?? messages.at(-1);
  return sent === undefined ? [] : [sent];
}

const overHttp = (api: string) =>
  new DefaultChatTransport<UIMessage>({
    api,
    fetch: fetchReply,
    prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({
      body: { id, messages: newest({ messages, messageId }), trigger, messageId },
    }),
  });

/** The transport of one page: all its chats, over whichever route is chosen. */
export class PageTransport implements ChatTransport<UIMessage> {
  readonly resumeStreamIsReplay = true;
  readonly envelope: EnvelopeChatTransport;
  readonly #routes: Record<RouteName, ChatTransport<UIMessage>>;

  constructor(recorder: Recorder, told: (chatId: string) => void) {
    const onActive = (chat: string) => {
      recorder.out({ chat }, { type: 'active' });
      told(chat);
    };
    const recorded = <Transport extends ChatTransport<UIMessage>>(transport: Transport) =>
      recordingTransport(transport, recorder);
    const overSocket = (url: string) =>
      recorded(
        new SocketChatTransport({
          url,
          onActive,
          // Another chat is shown: its reply goes on. The Stop button calls the route.
          onAbort: 'leave',
          prepareSendMessagesRequest: request => ({ messages: newest(request) }),
        }),
      );
    const ws = overSocket('api/chat/ws');
    this.envelope = recorded(new EnvelopeChatTransport({ url: 'live', onActive }));
    this.#routes = {
      'sse ai-sdk': recorded(overHttp('api/chat')),
      'sse adk': recorded(overHttp('stream')),
      'ws ai-sdk': ws,
      'ws adk': ws,
      'live ai-sdk': overSocket('api/chat/live'),
      'live adk': this.envelope,
    };
  }

  get isEnvelope(): boolean {
    const { mode, profile } = currentPrefs();
    return mode === 'live' && profile === 'adk';
  }

  sendMessages(options: Send) {
    return this.#chosen().sendMessages(options);
  }

  reconnectToStream(options: Resume) {
    return this.#chosen().reconnectToStream(options);
  }

  #chosen(): ChatTransport<UIMessage> {
    const { mode, profile } = currentPrefs();
    return this.#routes[`${mode} ${profile}`];
  }
}
