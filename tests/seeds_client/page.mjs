// A page of a stand, without a browser. See README.md for the commands and the answers.

import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

import { load } from '../conformance/sdk.mjs';
import { Wire } from '../conformance/wire.mjs';
import { LiveTransport } from './liveTransport.mjs';
import { BROWSER_TOOLS, CONFIRMATION, isTool, nameOf, partsOf, STANDS } from './stands.mjs';

const PATIENCE_SECONDS = 60;

const { values: options } = parseArgs({
  options: {
    stand: { type: 'string' },
    route: { type: 'string' },
    url: { type: 'string' },
    sdk: { type: 'string', default: 'ai6' },
    draft: { type: 'boolean', default: false },
  },
});
const stand = STANDS[options.stand];
const isLive = options.route === 'live';

const { sdk, createChat } = await load(options.sdk);
const listeners = new Set(); // called whenever anything may have changed
const pending = new Set(); // requests that have not ended
const runs = []; // the tools that the page ran
const attempted = new Set(); // the calls of them
const wire = new Wire(changed);
const socket = isLive ? new LiveTransport(options.url, stand) : undefined;
const api = `${options.url}/stream${stand.profile ? `?profile=${stand.profile}` : ''}`;
const transport = socket ?? new sdk.DefaultChatTransport({ api, fetch: wire.fetch });
const chat = createChat({
  id: `chat-${randomUUID()}`,
  transport,
  sendAutomaticallyWhen: stand.sendAutomaticallyWhen(),
  onChange: changed,
  onRequest: track,
});

function changed() {
  // The page renders, and what it renders may run.
  if (chat !== undefined) runTools();
  listeners.forEach(listener => listener());
}

function track(promise) {
  pending.add(promise);
  const done = () => {
    pending.delete(promise);
    changed();
  };
  promise.then(done, done);
  return promise;
}

const lastParts = () => partsOf(chat.messages.at(-1)).filter(isTool);
const questions = () => lastParts().filter(stand.isQuestion);
const isYes = part =>
  lastParts().some(
    each =>
      each.type === CONFIRMATION &&
      each.output?.confirmed === true &&
      each.input?.originalFunctionCall?.id === part.toolCallId,
  );

function runTools() {
  for (const part of lastParts()) {
    const tool = nameOf(part);
    if (!BROWSER_TOOLS.has(tool) || attempted.has(part.toolCallId)) continue;
    if (!stand.runs({ part, isLive, isYes })) continue;
    attempted.add(part.toolCallId);
    runs.push(tool);
    // In the very tick: nothing is awaited between seeing the call and answering it.
    const output = tool === 'change_bgm' ? { success: true } : { latitude: 35.6, longitude: 139.7 };
    const isAside = isLive && part.approval === undefined;
    if (isAside) track(socket.result(part.toolCallId, output));
    else track(give({ tool, toolCallId: part.toolCallId, output }));
  }
}

/** What the browser gave, into the chat; helpers that do not look at it leave the sending to the page. */
async function give(output) {
  await chat.addToolOutput(output);
  if (stand === STANDS.native) return;
  while (chat.status === 'submitted' || chat.status === 'streaming') await change();
  const settled = lastParts().find(({ toolCallId }) => toolCallId === output.toolCallId);
  const isSent = wire.posts.some(({ body }) =>
    JSON.stringify(body).includes(JSON.stringify(output.output)),
  );
  if (settled?.state === 'output-available' && !isSent) await chat.sendMessage();
}

/** What a stand that writes its own requests does: the reply goes where a chat's goes. */
async function post(message) {
  // The chat sends nothing of its own meanwhile, so its transport can be borrowed.
  const messages = [...chat.messages, message];
  const stream = await transport.sendMessages({
    chatId: chat.id,
    messages,
    trigger: 'submit-message',
    messageId: undefined,
    abortSignal: undefined,
  });
  const last = chat.messages.at(-1);
  for await (const read of sdk.readUIMessageStream({ message: structuredClone(last), stream })) {
    chat.messages = [...chat.messages.slice(0, -1), read];
  }
}

const turn = () => new Promise(resolve => setImmediate(resolve));

function change() {
  return new Promise(resolve => {
    const listener = () => resolve(listeners.delete(listener));
    listeners.add(listener);
  });
}

async function settled() {
  do {
    await Promise.allSettled(pending);
    await turn();
  } while (pending.size > 0);
}

/** All clicks act in one tick, as on buttons that stay there until the page renders anew. */
function click({ approved, times = 1 }) {
  const verdicts = [approved].flat();
  questions().forEach((part, index) => {
    for (let count = 0; count < times; count += 1) {
      const yes = verdicts[index % verdicts.length];
      track(
        Promise.resolve(stand.answer({ part, approved: yes, chat, socket, post, draft: options.draft })),
      );
    }
  });
}

const COMMANDS = {
  say: ({ text }) => void chat.sendMessage({ text }),
  click,
  ping: () => socket.ping(),
  talk: ({ chunks }) => socket.talk(chunks),
  wait: async ({ for: what, count = 1 }) => {
    if (what === 'settled') return settled();
    if (what === 'pong') while (socket.latencies.length < count) await later();
    while (what === 'questions' && questions().length < count) {
      if (pending.size === 0) throw new Error(`the chat settled with ${questions().length} questions`);
      await change();
    }
  },
  state: () => {},
};

// A pong changes nothing that a page shows.
const later = () => new Promise(resolve => setTimeout(resolve, 5));

async function withPatience(work) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('timeout')), PATIENCE_SECONDS * 1000);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function answer(line) {
  const { n, do: verb, ...fields } = JSON.parse(line);
  let failure;
  try {
    await withPatience(COMMANDS[verb](fields));
    if (wire.isEndless) throw new Error('endless resubmission');
  } catch (error) {
    failure = error;
  }
  const report = {
    n,
    failure: failure?.message ?? null,
    status: chat.status,
    error: chat.error?.message ?? null,
    messages: chat.messages,
    posts: wire.posts.length,
    sent: socket?.sent ?? [],
    besides: socket?.besides ?? [],
    latencies: socket?.latencies ?? [],
    runs,
  };
  process.stdout.write(`${JSON.stringify(report)}\n`);
}

createInterface({ input: process.stdin })
  .on('line', answer)
  .on('close', () => process.exit(0));
