// How one version reads a stream of chunks, from the response to the message that a page would show.

import { kindOf } from './sdk.mjs';

/** A response as a server sends it that flushes every chunk: one event per read. */
function respond(chunks) {
  const events = [...chunks.map(chunk => JSON.stringify(chunk)), '[DONE]'].values();
  const encoder = new TextEncoder();
  const body = new ReadableStream(
    {
      pull(controller) {
        const { value, done } = events.next();
        if (done) controller.close();
        else controller.enqueue(encoder.encode(`data: ${value}\n\n`));
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

/** Every chunk the schema refuses, also those a client never reaches. */
async function refusedChunks(sdk, chunks) {
  const schema = sdk.asSchema(sdk.uiMessageChunkSchema);
  const refused = [];
  for (const [index, chunk] of chunks.entries()) {
    const result = await schema.validate(chunk);
    if (!result.success) refused.push({ index, error: result.error.message });
  }
  return refused;
}

/** Reads a stream as the answer to a message; `message` is the assistant message that it continues. */
export async function read({ sdk, createChat }, { chunks, message }) {
  let finishReason;
  const user = { id: 'user', role: 'user', parts: [{ type: 'text', text: 'go' }] };
  const chat = createChat({
    id: 'chat',
    generateId: () => 'generated', // the id of a reply whose `start` names none
    messages: structuredClone(message ? [user, message] : [user]),
    transport: new sdk.DefaultChatTransport({
      api: 'http://chat.invalid/api/chat',
      fetch: async () => respond(chunks),
    }),
    onFinish: finish => {
      finishReason = finish.finishReason;
    },
  });

  await chat.sendMessage();

  const replies = chat.messages.filter(({ role }) => role === 'assistant');
  return {
    message: replies.at(-1) ?? null,
    replies: replies.length,
    status: chat.status,
    error: chat.error?.message ?? null,
    errorKind: kindOf(chat.error, { chunks }),
    finishReason: finishReason ?? null,
    refused: await refusedChunks(sdk, chunks),
  };
}
