// app/api/chat/route.ts
import {
  consumeStream,
  createUIMessageStream,
  createUIMessageStreamResponse,
  DefaultChatTransport,
  validateUIMessages,
  type UIMessage,
} from 'ai';

import { loadMessages, saveMessages } from './database';

const agent = new DefaultChatTransport({
  api: `${process.env.AGENT_SERVER ?? 'http://127.0.0.1:8000'}/api/chat?sdk=7`,
});

/** Returns the messages up to the one that was sent, which is new or takes the place of an old one. */
function upTo(sent: UIMessage, stored: UIMessage[]) {
  const index = stored.findIndex(message => message.id === sent.id);
  return [...(index === -1 ? stored : stored.slice(0, index)), sent];
}

/** Keeps a copy of every message in a database of its own. */
export async function POST(request: Request) {
  const { id, messages: sent, trigger, messageId } = await request.json();
  const messages = await validateUIMessages({
    messages: upTo(sent.at(-1), await loadMessages(id)),
  });
  const stream = createUIMessageStream({
    originalMessages: messages,
    async execute({ writer }) {
      const reply = await agent.sendMessages({
        chatId: id,
        messages: messages.slice(-1),
        trigger,
        messageId,
        // Who calls, as your server knows it.
        headers: { cookie: request.headers.get('cookie') ?? '' },
        abortSignal: undefined,
      });
      writer.merge(reply);
    },
    onError: error => (error instanceof Error ? error.message : String(error)),
    onEnd: ({ messages }) => saveMessages(id, messages),
  });
  // Read to its end also if the tab is closed: the reply goes on, and is to be kept.
  return createUIMessageStreamResponse({ stream, consumeSseStream: consumeStream });
}
