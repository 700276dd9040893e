import assert from 'node:assert/strict';
import { onTestFinished, test } from 'vitest';

import { SocketChatTransport } from 'adk-stream-client';

import { memorySockets } from './memorySocket.js';

const MESSAGES = [
  { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'hi' }] },
  { id: 'm2', role: 'user', parts: [{ type: 'text', text: 'pay 5' }] },
];
const TEXT = { type: 'text-delta', id: 't', delta: 'Hello.' };

/** A page whose first socket will be `sockets.opened[0]`. */
function page(options = {}) {
  const sockets = memorySockets();
  const transport = new SocketChatTransport({
    url: 'https://example.test/api/chat/ws',
    webSocket: sockets.Socket,
    ...options,
  });
  const send = (chatId = 'c1', fields = {}) =>
    transport.sendMessages({ chatId, messages: MESSAGES, trigger: 'submit-message', ...fields });
  const resume = (chatId = 'c1', fields = {}) => transport.reconnectToStream({ chatId, ...fields });
  return { ...sockets, transport, send, resume };
}

/** Lets everything happen that needs no network. */
const settled = () => new Promise(resolve => setImmediate(resolve));

/** The newest socket of a page, open. */
async function online({ opened }) {
  await settled();
  const socket = opened.at(-1);
  if (socket.readyState === 0) socket.open();
  return socket;
}

async function read(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

const chunk = (requestId, sequence, value = TEXT) => ({
  type: 'chunk',
  requestId,
  sequence,
  chunk: value,
});

test('a message is sent as ai 7 sends it, and its reply is a stream', async () => {
  const chat = page();
  const sending = chat.send('c1', {
    messageId: 'm2',
    headers: { 'X-A': '1' },
    body: { b: 2 },
    metadata: 3,
  });
  const socket = await online(chat);
  const [{ requestId, ...frame }] = socket.sent;
  assert.deepEqual(frame, {
    type: 'send',
    id: 'c1',
    messages: MESSAGES,
    trigger: 'submit-message',
    messageId: 'm2',
    headers: { 'x-a': '1' },
    body: { b: 2 },
    metadata: 3,
  });
  socket.says({ type: 'start', requestId }, chunk(requestId, 0), chunk(requestId, 1));
  socket.says({ type: 'end', requestId });
  assert.deepEqual(await read(await sending), [TEXT, TEXT]);
});

test('the chats of a page share a socket and not their replies', async () => {
  const chat = page();
  const one = chat.send('one');
  const two = chat.send('two');
  const socket = await online(chat);
  const [first, second] = socket.sent.map(frame => frame.requestId);
  const other = { ...TEXT, delta: 'Other.' };
  socket.says(chunk(first, 0), chunk(second, 0, other));
  socket.says({ type: 'end', requestId: second }, { type: 'end', requestId: first });
  assert.deepEqual(await read(await one), [TEXT]);
  assert.deepEqual(await read(await two), [other]);
  assert.equal(chat.opened.length, 1);
});

test('what runs is resumed, and nothing is null', async () => {
  const chat = page();
  const none = chat.resume('quiet');
  const some = chat.resume('busy');
  const socket = await online(chat);
  const [first, second] = socket.sent.map(frame => frame.requestId);
  assert.deepEqual(socket.sent[0], {
    type: 'resume',
    requestId: first,
    id: 'quiet',
    headers: {},
    body: {},
  });
  socket.says({ type: 'no-active', requestId: first }, chunk(second, 0));
  socket.says({ type: 'end', requestId: second });
  assert.equal(await none, null);
  assert.deepEqual(await read(await some), [TEXT]);
});

test('a refusal is the error of its request', async () => {
  const chat = page();
  const refused = assert.rejects(chat.send('one'), { message: 'No such chat.' });
  const other = chat.send('two');
  const socket = await online(chat);
  const [first, second] = socket.sent.map(frame => frame.requestId);
  socket.says({ type: 'error', requestId: first, errorText: 'No such chat.' });
  await refused;
  socket.says({ type: 'end', requestId: second });
  assert.deepEqual(await read(await other), []);
});

for (const [what, frame] of [
  ['a gap', chunk('1', 2)],
  ['a chunk again', chunk('1', 0)],
  ['no sequence', { type: 'chunk', requestId: '1', chunk: TEXT }],
  ['no chunk', { type: 'chunk', requestId: '1', sequence: 1 }],
  ['a chunk without a type', chunk('1', 1, {})],
  ['an unknown frame', { type: 'dance', requestId: '1' }],
  ['an error that is no text', { type: 'error', requestId: '1', errorText: {} }],
]) {
  test(`${what} fails that reply, is aborted, and harms no other`, async () => {
    const chat = page();
    const one = chat.send('one');
    const two = chat.send('two');
    const socket = await online(chat);
    const other = socket.sent[1].requestId;
    assert.equal(socket.sent[0].requestId, '1');
    socket.says(chunk('1', 0), frame, chunk('1', 1), { type: 'end', requestId: '1' });
    await assert.rejects(read(await one), /reply/);
    assert.deepEqual(socket.sent.slice(2), [{ type: 'abort', requestId: '1', leave: true }]);
    socket.says(chunk(other, 0), { type: 'end', requestId: other });
    assert.deepEqual(await read(await two), [TEXT]);
  });
}

for (const text of ['{', '[]', 'null', '{"type":"end"}', '{"type":"end","requestId":1}']) {
  test(`what is nobody's, ${text}, is a lost network: whose end it was cannot be known`, async () => {
    const chat = page();
    const sending = chat.send();
    const socket = await online(chat);
    socket.says(chunk(socket.sent[0].requestId, 0), text);
    await assert.rejects(read(await sending), { name: 'TypeError', message: /network/ });
    assert.equal(socket.closedWith, 4400);
    chat.send();
    await settled();
    assert.equal(chat.opened.length, 2);
  });
}

test('a socket that is lost fails its replies as a lost network, and the next request opens another', async () => {
  const chat = page();
  const begun = chat.send('one');
  const waiting = chat.resume('two');
  const lost = { name: 'TypeError', message: /network .* was lost \(1006\)/ };
  const failed = assert.rejects(waiting, lost);
  const socket = await online(chat);
  const { requestId } = socket.sent.find(frame => frame.type === 'send');
  socket.says({ type: 'start', requestId });
  socket.lose(1006);
  await assert.rejects(read(await begun), lost);
  await failed;
  const again = chat.resume('one');
  const next = await online(chat);
  assert.notEqual(next, socket);
  next.says({ type: 'no-active', requestId: next.sent[0].requestId });
  assert.equal(await again, null);
});

test('a socket that is being closed is not asked', async () => {
  const chat = page();
  const sending = chat.send();
  const socket = await online(chat);
  socket.says({ type: 'end', requestId: socket.sent[0].requestId });
  await sending;
  socket.readyState = 2;
  chat.send();
  await settled();
  assert.equal(chat.opened.length, 2);
  assert.equal(socket.sent.length, 1);
});

test('a server that cannot be reached fails the request, and the next one tries again', async () => {
  const chat = page();
  const failed = assert.rejects(chat.send(), {
    name: 'TypeError',
    message: /network .* not be opened/,
  });
  await settled();
  chat.opened[0].lose(1006);
  await failed;
  chat.send();
  assert.equal((await online(chat)).sent.length, 1);
});

test('stopping sends an abort and ends the stream; what was on its way is ignored', async () => {
  const chat = page();
  const stop = new AbortController();
  const sending = chat.send('c1', { abortSignal: stop.signal });
  const socket = await online(chat);
  const { requestId } = socket.sent[0];
  socket.says(chunk(requestId, 0));
  const stream = await sending;
  stop.abort();
  socket.says(chunk(requestId, 1), { type: 'end', requestId });
  await assert.rejects(read(stream), { name: 'AbortError' });
  assert.deepEqual(socket.sent.slice(1), [{ type: 'abort', requestId }]);
});

test('a page may leave a reply without stopping it', async () => {
  const chat = page({ onAbort: 'leave' });
  const stop = new AbortController();
  const sending = chat.send('c1', { abortSignal: stop.signal });
  const socket = await online(chat);
  const { requestId } = socket.sent[0];
  socket.says(chunk(requestId, 0));
  const stream = await sending;
  stop.abort();
  await assert.rejects(read(stream), { name: 'AbortError' });
  assert.deepEqual(socket.sent.slice(1), [{ type: 'abort', requestId, leave: true }]);
});

test('stopping before the reply begins rejects the request', async () => {
  const chat = page();
  const stop = new AbortController();
  const failed = assert.rejects(chat.resume('c1', { abortSignal: stop.signal }), {
    name: 'AbortError',
  });
  const socket = await online(chat);
  stop.abort();
  await failed;
  assert.deepEqual(
    socket.sent.map(frame => frame.type),
    ['resume', 'abort'],
  );
});

test('stopping before the socket is open sends nothing', async () => {
  const chat = page();
  const stop = new AbortController();
  const failed = assert.rejects(chat.send('c1', { abortSignal: stop.signal }), {
    name: 'AbortError',
  });
  await settled();
  stop.abort();
  await failed;
  chat.send('c2');
  const socket = await online(chat);
  assert.deepEqual(
    socket.sent.map(frame => frame.id),
    ['c2'],
  );
});

test('what was stopped before it began is not sent', async () => {
  const chat = page();
  const abortSignal = AbortSignal.abort();
  await assert.rejects(chat.send('c1', { abortSignal }), { name: 'AbortError' });
  await assert.rejects(chat.resume('c1', { abortSignal }), { name: 'AbortError' });
  assert.equal(chat.opened.length, 0);
});

test('a stop after the end sends nothing', async () => {
  const chat = page();
  const stop = new AbortController();
  const sending = chat.send('c1', { abortSignal: stop.signal });
  const socket = await online(chat);
  socket.says({ type: 'end', requestId: socket.sent[0].requestId });
  await read(await sending);
  stop.abort();
  assert.equal(socket.sent.length, 1);
});

test('a stream that is cancelled is aborted', async () => {
  const chat = page();
  const sending = chat.send();
  const socket = await online(chat);
  const { requestId } = socket.sent[0];
  socket.says({ type: 'start', requestId });
  await (await sending).cancel();
  socket.says(chunk(requestId, 0));
  assert.deepEqual(socket.sent.slice(1), [{ type: 'abort', requestId, leave: true }]);
});

test('closing fails what runs, and the next request opens another socket', async () => {
  const chat = page();
  const failed = assert.rejects(chat.send(), { message: 'The chat transport was closed.' });
  const socket = await online(chat);
  chat.transport.close();
  await failed;
  assert.equal(socket.closedWith, 1000);
  chat.send();
  assert.equal((await online(chat)).sent.length, 1);
  assert.equal(chat.opened.length, 2);
});

test('closing before there is a socket leaves none open', async () => {
  let answer;
  const params = () => new Promise(resolve => (answer = resolve));
  const chat = page({ params });
  const failed = assert.rejects(chat.send(), { message: 'The chat transport was closed.' });
  await settled();
  chat.transport.close();
  answer({});
  await failed;
  await settled();
  assert.deepEqual(
    chat.opened.map(socket => socket.closedWith),
    [1000],
  );
});

test('a hint tells which chat is active', async () => {
  const active = [];
  const chat = page({ onActive: chatId => active.push(chatId) });
  const sending = chat.send();
  const socket = await online(chat);
  const { requestId } = socket.sent[0];
  socket.says({ type: 'active', requestId: '-', id: 'c9' }, { type: 'active', requestId: '-' });
  socket.says({ type: 'end', requestId });
  await read(await sending);
  assert.deepEqual(active, ['c9']);
});

test('less can be sent', async () => {
  const asked = [];
  const chat = page({
    prepareSendMessagesRequest: async request => {
      asked.push(request);
      return { messages: request.messages.slice(-1) };
    },
  });
  chat.send('c1', { body: { b: 2 }, metadata: 3 });
  const socket = await online(chat);
  assert.deepEqual(socket.sent[0].messages, MESSAGES.slice(-1));
  assert.deepEqual(socket.sent[0].body, { b: 2 });
  assert.deepEqual(asked, [
    {
      id: 'c1',
      messages: MESSAGES,
      trigger: 'submit-message',
      messageId: undefined,
      headers: {},
      body: { b: 2 },
      requestMetadata: 3,
    },
  ]);
});

test('a page need not name its own origin', async () => {
  globalThis.location = { href: 'https://example.test/chats/1?tab=2' };
  onTestFinished(() => delete globalThis.location);
  const chat = page({ url: '/api/chat/ws?a=1', params: { sdk: '7' }, protocols: ['p'] });
  chat.send();
  await settled();
  assert.equal(chat.opened[0].url, 'wss://example.test/api/chat/ws?a=1&sdk=7');
  assert.deepEqual(chat.opened[0].protocols, ['p']);
});

test('the query is asked for with each socket', async () => {
  let count = 0;
  const chat = page({
    url: 'http://example.test/ws',
    params: async () => ({ token: `${(count += 1)}` }),
  });
  const failed = assert.rejects(chat.send(), TypeError);
  (await online(chat)).lose(1006);
  await failed;
  chat.send();
  await settled();
  assert.deepEqual(
    chat.opened.map(socket => socket.url),
    ['ws://example.test/ws?token=1', 'ws://example.test/ws?token=2'],
  );
});

test('a query that cannot be had fails the request, and the next one asks again', async () => {
  const answers = [Promise.reject(new Error('logged out')), { token: '1' }];
  const chat = page({ params: () => answers.shift() });
  await assert.rejects(chat.send(), { message: 'logged out' });
  chat.send();
  assert.equal((await online(chat)).sent.length, 1);
});

test('outside of a page a relative address is refused', async () => {
  await assert.rejects(page({ url: '/api/chat/ws' }).send(), { code: 'ERR_INVALID_URL' });
});

test(
  'where there is no WebSocket, the error says what to give',
  { skip: 'WebSocket' in globalThis },
  async () => {
    await assert.rejects(page({ webSocket: undefined }).send(), /give one as `webSocket`/);
  },
);
