// app/api/chat/route.ts
import { createUIMessageStream, createUIMessageStreamResponse, DefaultChatTransport } from 'ai';

const agent = new DefaultChatTransport({
  api: `${process.env.AGENT_SERVER ?? 'http://127.0.0.1:8000'}/api/chat?sdk=7`,
});

/** Puts a part of its own before the agent's reply. */
export async function POST(request: Request) {
  const { id, messages, trigger, messageId } = await request.json();
  const stream = createUIMessageStream({
    async execute({ writer }) {
      writer.write({ type: 'data-greeting', data: { text: 'One moment.' }, transient: true });
      const reply = await agent.sendMessages({
        chatId: id,
        messages,
        trigger,
        messageId,
        // Who calls, as your server knows it.
        headers: { cookie: request.headers.get('cookie') ?? '' },
        abortSignal: request.signal,
      });
      writer.merge(reply);
    },
    onError: error => (error instanceof Error ? error.message : String(error)),
  });
  return createUIMessageStreamResponse({ stream });
}
