// A stock chat without a browser: the real AbstractChat of one version with its DefaultChatTransport, or
// its WebSocketChatTransport (our SocketChatTransport, where the version has none), driven by one JSON command
// per line; or, with `--envelope`, a chat of a page that uses all of our client. See README.md for the commands
// and the answers.

import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

import { preparation } from './prepare.mjs';
import { kindOf, load, ourClient, socketTransport } from './sdk.mjs';
import { watchedEnvelopes, watchedSocket } from './socket.mjs';
import { Wire } from './wire.mjs';

const PATIENCE_SECONDS = 20;

const { values: options } = parseArgs({
  options: {
    sdk: { type: 'string' },
    api: { type: 'string' },
    auto: { type: 'string', default: 'approvals' },
    chat: { type: 'string' },
    resume: { type: 'boolean', default: false },
    browser: { type: 'boolean', default: false },
    socket: { type: 'boolean', default: false },
    envelope: { type: 'boolean', default: false },
    prepare: { type: 'string', default: 'all' },
  },
});
const ours = options.envelope ? await ourClient() : undefined;

const { sdk, createChat } = await load(options.sdk);

const approvals = sdk.lastAssistantMessageIsCompleteWithApprovalResponses;
const tools = sdk.lastAssistantMessageIsCompleteWithToolCalls;
// What people write who know no helper: both look at single parts, and send again while these stay as they are.
const lastPartsOf = messages => messages.at(-1)?.parts ?? [];
const isApproved = part => part.state === 'approval-responded' && part.approval.approved;
const isConfirmed = part =>
  part.type === 'tool-adk_request_confirmation' && part.state === 'output-available';
const isUnsettledIn = parts => confirmation =>
  parts.some(
    ({ toolCallId, state }) =>
      toolCallId === confirmation.input.originalFunctionCall.id && !state.startsWith('output-'),
  );
// Made for each chat.
const AUTO = {
  approved: () => ({ messages }) => lastPartsOf(messages).some(isApproved),
  confirmed: () => ({ messages }) => {
    const parts = lastPartsOf(messages);
    return parts.filter(isConfirmed).some(isUnsettledIn(parts));
  },
  approvals: () => approvals,
  tools: () => tools,
  both: () => state => approvals(state) || tools(state),
  answered: () => ours.sendWhenAnswered({ browserTools }),
  none: () => undefined,
};
if (!(options.auto in AUTO)) throw new Error(`unknown --auto ${options.auto}`);

let chat; // the one that is shown; undefined before the page has loaded
const toolCalls = []; // what `onToolCall` was called with
const finishes = []; // what `onFinish` was called with, without the messages
const listeners = new Set(); // called whenever anything may have changed
const pending = new Set(); // requests and commands that have not ended
const wire = new Wire(changed);
const socket = options.envelope ? watchedEnvelopes(wire) : watchedSocket(wire);
// A page has one, whatever chats it shows.
const transport = await openTransport();
const active = []; // the chats for which `onActive` was called
const runs = []; // what the browser's tools were called with
const browserTools = options.envelope ? runBrowserTools() : undefined;
const hidden = new Map(); // chats of the page that are not shown, by id
chat = mount({ id: options.chat, messages: [] });

async function openTransport() {
  const { api: url } = options;
  const { Socket: webSocket } = socket;
  if (options.envelope) {
    const onActive = id => {
      active.push(id);
      // What a page does that shows the chat.
      if (id === chat.id) track(chat.resumeStream());
      changed();
    };
    return new ours.EnvelopeChatTransport({ url, webSocket, onActive });
  }
  const prepareSendMessagesRequest = preparation(options.prepare, { socket: options.socket });
  if (options.socket) {
    return new (await socketTransport(sdk))({ url, webSocket, prepareSendMessagesRequest });
  }
  return new sdk.DefaultChatTransport({ api: url, fetch: wire.fetch, prepareSendMessagesRequest });
}

/** What our helpers answer with. */
function answers() {
  const { addToolOutput, addToolApprovalResponse } = chat;
  return { chatId: chat.id, websocket: transport, addToolOutput, addToolApprovalResponse };
}

function runBrowserTools() {
  const tools = {
    change_bgm: ({ track }) => {
      runs.push(track);
      return { playing: track };
    },
    get_location: () => {
      runs.push('location');
      throw new Error('The user does not say.');
    },
  };
  return new ours.BrowserTools({ tools, transport: answers });
}

function changed() {
  listeners.forEach(listener => listener());
  if (chat) browserTools?.look(chat.messages, chat.status);
}

function track(promise) {
  const done = () => {
    pending.delete(promise);
    changed();
  };
  pending.add(promise);
  promise.then(done, done);
  return promise;
}

/** What a page does when it loads: `useChat({id, messages, resume})`. */
function mount({ id, messages }) {
  const mounted = createChat({
    id,
    messages,
    transport,
    sendAutomaticallyWhen: AUTO[options.auto](),
    onToolCall: ({ toolCall }) => {
      toolCalls.push(toolCall);
      if (options.browser) runInBrowser(mounted, toolCall);
    },
    onFinish: ({ isAbort, isDisconnect, isError, finishReason }) => {
      finishes.push({ isAbort, isDisconnect, isError, finishReason });
    },
    onChange: changed,
    onRequest: track,
  });
  if (options.resume) track(mounted.resumeStream());
  return mounted;
}

/** What a stock page does with the tools that it has: the output is given at once, and not awaited. */
function runInBrowser({ addToolOutput }, { toolName: tool, toolCallId, input }) {
  const outputs = { change_bgm: { playing: input?.track }, get_location: { latitude: 35.6 } };
  if (!(tool in outputs)) return;
  runs.push(tool);
  track(addToolOutput({ tool, toolCallId, output: outputs[tool] }));
}

/** What a reload does: the old page's request is cut, and a new chat begins with these messages. */
async function reload(messages) {
  const requests = [...pending];
  const isClosed = socket.cut();
  // Over a socket nothing is said: `stop` would be sent as an abort, which stops the reply.
  if (isClosed) await Promise.allSettled([isClosed, ...requests]);
  else await chat.stop();
  chat = mount({ id: chat.id, messages });
}

/** What a sidebar does: another chat is shown, over the same transport; the one before goes on. */
async function show(id) {
  hidden.set(chat.id, chat);
  chat = hidden.get(id) ?? mount({ id, messages: [] });
}

/** What Vercel's chatbot does to edit: the new text under the old id, and `regenerate()`. */
function rewrite({ messageId, text }) {
  const index = chat.messages.findIndex(({ id }) => id === messageId);
  const edited = { ...chat.messages[index], parts: [{ type: 'text', text }] };
  chat.messages = [...chat.messages.slice(0, index), edited];
  return chat.regenerate();
}

/** What assistant-ui does to edit: the list is cut after the parent, and a new message is sent. */
function branch({ parentId, text }) {
  chat.messages = chat.messages.slice(0, chat.messages.findIndex(({ id }) => id === parentId) + 1);
  return chat.sendMessage({ text });
}

/** The commands that act on the chat; each is called in the same turn in which its line was read. */
const ACTIONS = {
  send: ({ text, files, body }) => chat.sendMessage({ text, ...(files && { files }) }, { body }),
  edit: ({ messageId, text, body }) => chat.sendMessage({ text, messageId }, { body }),
  submit: () => chat.sendMessage(),
  regenerate: ({ messageId, body }) => chat.regenerate({ messageId, body }),
  rewrite,
  branch,
  approve: ({ id, approved, reason }) => chat.addToolApprovalResponse({ id, approved, reason }),
  output: ({ tool, toolCallId, output }) => chat.addToolOutput({ tool, toolCallId, output }),
  'output-error': ({ tool, toolCallId, errorText }) =>
    chat.addToolOutput({ tool, toolCallId, state: 'output-error', errorText }),
  confirm: ({ toolCallId, confirmed, reason }) =>
    ours.handleConfirmation(confirmation(toolCallId), confirmed, answers(), reason),
  interrupt: async () => transport.interrupt(chat.id),
  stop: () => chat.stop(),
  resume: () => chat.resumeStream(),
  set: ({ messages }) => reload(messages),
  show: ({ id }) => show(id),
  cut: async () => socket.cut(),
  write: async ({ text }) => socket.write(text),
};

const confirmation = id =>
  chat.messages.flatMap(({ parts }) => parts).find(part => part.toolCallId === id);
const isAsked = part =>
  part.type === 'tool-adk_request_confirmation' && part.state === 'input-available';
const lastParts = () => chat.messages.at(-1)?.parts ?? [];
const lastText = () => lastParts().map(part => (part.type === 'text' ? part.text : '')).join('');

/** What `wait` can wait for, besides `settled`. */
const CONDITIONS = {
  text: ({ value }) => lastText().includes(value),
  streaming: () => chat.status === 'streaming',
  part: ({ state, toolCallId }) =>
    lastParts().some(
      part => part.state === state && (toolCallId == null || part.toolCallId === toolCallId),
    ),
  requests: ({ value }) => wire.posts.length >= value,
  asked: ({ value }) => lastParts().filter(isAsked).length >= value,
  active: ({ value }) => active.length >= value,
};
// What comes from elsewhere may come to a chat that has settled.
const FROM_ELSEWHERE = new Set(['active']);

// One macrotask. Between the end of a request, or an answer, and the automatic send that follows there
// are only microtasks, because the version's own `lastAssistantMessageIs...` are synchronous.
const turn = () => new Promise(resolve => setImmediate(resolve));

/** Resolves when nothing is under way and no automatic send follows. */
async function settled() {
  do {
    await Promise.allSettled(pending);
    await turn();
  } while (pending.size > 0);
}

async function untilSettled() {
  await settled();
  if (chat.status !== 'ready' && chat.status !== 'error') {
    throw new Error(`nothing is under way, but the status stays ${chat.status}`);
  }
}

/** Resolves as soon as the condition holds; fails when the chat settles without it. */
function until(command) {
  const holds = CONDITIONS[command.for];
  if (!holds) throw new Error(`cannot wait for ${command.for}`);
  return new Promise((resolve, reject) => {
    const check = () => {
      if (holds(command)) resolve(listeners.delete(check));
    };
    listeners.add(check);
    check();
    if (FROM_ELSEWHERE.has(command.for)) return;
    settled().then(() => {
      listeners.delete(check);
      reject(new Error(`the chat settled (${chat.status}) before ${describe(command)}`));
    });
  });
}

const describe = ({ n, do: verb, ...rest }) => `${verb} ${JSON.stringify(rest)}`;

async function withPatience(command, work) {
  const seconds = command.timeout ?? PATIENCE_SECONDS;
  let timer;
  const timeout = new Promise((_, reject) => {
    const late = () => reject(new Error(`timeout after ${seconds} s: ${describe(command)}`));
    timer = setTimeout(late, seconds * 1000);
  });
  try {
    await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

async function obey(command) {
  const action = ACTIONS[command.do];
  if (action) {
    const acting = track(action(command));
    if (command.wait === false) {
      // The answer shows what the action did at once, and whether it was refused.
      await Promise.race([acting.then(turn), turn()]);
    } else {
      await withPatience(command, acting.then(untilSettled));
    }
  } else if (command.do === 'wait') {
    await withPatience(command, command.for === 'settled' ? untilSettled() : until(command));
  } else if (command.do !== 'state' && command.do !== 'quit') {
    throw new Error(`unknown command ${command.do}`);
  }
  if (wire.isEndless) throw new Error('endless resubmission');
}

function report(n, failure) {
  const answer = {
    n,
    ok: failure == null,
    chatId: chat.id,
    messages: chat.messages,
    status: chat.status,
    error: failure?.message ?? chat.error?.message ?? null,
    errorKind: kindOf(chat.error, wire.latest),
    requests: wire.posts.length,
    bodies: wire.posts.map(({ body }) => body),
    chunks: wire.posts.map(({ chunks }) => chunks),
    resumes: wire.resumes,
    frames: wire.frames,
    toolCalls,
    finishes,
    active,
    runs,
  };
  return new Promise(resolve => process.stdout.write(`${JSON.stringify(answer)}\n`, resolve));
}

async function answer(line) {
  let command = {};
  let failure;
  try {
    command = JSON.parse(line);
    await obey(command);
  } catch (error) {
    failure = error;
  }
  await report(command.n, failure);
  // As closing the tab: every open request is cut.
  if (command.do === 'quit') process.exit(0);
}

const unanswered = new Set();
const input = createInterface({ input: process.stdin });
input.on('line', line => {
  // Not awaited: commands may overlap, and lines that arrive together act in the same turn.
  const answering = answer(line).finally(() => unanswered.delete(answering));
  unanswered.add(answering);
});
input.on('close', async () => {
  await Promise.all(unanswered);
  process.exit(0);
});
