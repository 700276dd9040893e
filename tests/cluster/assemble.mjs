// Reads replies that were cut with the real clients: a stream breaks after some bytes, then the chat
// resumes it. One JSON line in per reply, one out per reply and version:
//   {name, whole, cuts, posted}  `whole` is the reply's bytes (base64), `cuts` where it broke;
//                                `posted`: the broken stream was a POST's, else a resume's
//   {name, version, message, different}  `different` lists the cuts that ended in anything else

import { createInterface } from 'node:readline';
import { isDeepStrictEqual } from 'node:util';

import { load, VERSIONS } from '../conformance/sdk.mjs';

const USER = { id: 'user', role: 'user', parts: [{ type: 'text', text: 'go' }] };

/** A response of these bytes, in small pieces that split lines and characters; then its end. */
function respond(bytes, end) {
  let at = 0;
  const body = new ReadableStream(
    {
      pull(controller) {
        if (at >= bytes.length) return end(controller);
        controller.enqueue(bytes.subarray(at, (at += 97)));
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

const complete = bytes => respond(bytes, controller => controller.close());
const broken = bytes => respond(bytes, controller => controller.error(new TypeError('terminated')));

function mount({ sdk, createChat }, responses) {
  return createChat({
    id: 'chat',
    generateId: () => 'generated',
    messages: [structuredClone(USER)],
    transport: new sdk.DefaultChatTransport({
      api: 'http://chat.invalid/api/chat',
      fetch: async () => responses.shift(),
    }),
  });
}

const outcome = chat => ({ status: chat.status, messages: chat.messages.slice(1) });

async function resumed(client, whole) {
  const chat = mount(client, [complete(whole)]);
  await chat.resumeStream();
  return outcome(chat);
}

async function cutAndResumed(client, { whole, at, posted }) {
  const chat = mount(client, [broken(whole.subarray(0, at)), complete(whole)]);
  await (posted ? chat.sendMessage() : chat.resumeStream());
  // The versions before 6.0.304 and 7.0.138 append a replay: such a page loads the chat anew first.
  if (client.isOld) chat.messages = chat.messages.slice(0, 1);
  await chat.resumeStream();
  return outcome(chat);
}

const clients = await Promise.all(
  VERSIONS.map(async version => [
    version,
    { ...(await load(version)), isOld: version.endsWith('strict') },
  ]),
);

for await (const line of createInterface({ input: process.stdin })) {
  const { name, cuts, posted, ...given } = JSON.parse(line);
  const whole = Buffer.from(given.whole, 'base64');
  for (const [version, client] of clients) {
    const expected = await resumed(client, whole);
    const different = [];
    for (const at of cuts) {
      const got = await cutAndResumed(client, { whole, at, posted });
      if (!isDeepStrictEqual(got, expected)) different.push({ at, ...got });
    }
    const message = expected.status === 'ready' ? (expected.messages[0] ?? null) : null;
    process.stdout.write(`${JSON.stringify({ name, version, message, different })}\n`);
  }
}
