import { expect, test } from 'vitest';

import { DONE, EnvelopePage, frames, PONG, read, refused, types } from './envelopePage.js';
import { asking, call, CONFIRM, finish, gated, goingOn, output, start, text } from './replies.js';
import { settled } from './waiting.js';

const reply = (id: string, said = 'Hello.') => [start(id), ...text(said), finish()];

test('only the last message is sent, and its turn is a stream up to [DONE]', async () => {
  const page = new EnvelopePage();
  const sending = page.send();
  const socket = await page.socket();
  expect(socket.sent).toEqual([
    {
      type: 'message',
      version: '1.0',
      data: {
        id: 'c1',
        trigger: 'submit-message',
        messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'pay 5' }] }],
      },
    },
  ]);
  socket.says(...frames(reply('a1')), DONE);
  expect(await read(await sending)).toEqual(reply('a1'));
  expect(page.active).toEqual([]);
});

test('a turn that waits stays one stream, with one start, and takes the answer meanwhile', async () => {
  const page = new EnvelopePage();
  const sending = page.send();
  const socket = await page.socket();
  socket.says(...frames(asking('a1', ...gated('p1'))));
  const reading = read(await sending);
  expect(page.transport.canAnswer('c1', 'confirm-p1')).toBe(true);
  const answered = page.transport.sendToolResult({
    chatId: 'c1',
    toolCallId: 'confirm-p1',
    toolName: CONFIRM,
    result: { confirmed: true },
  });
  expect(socket.sent.at(-1)).toEqual({
    type: 'tool_result',
    version: '1.0',
    data: { toolCallId: 'confirm-p1', toolName: CONFIRM, result: { confirmed: true } },
  });
  const outputs = [output('confirm-p1', { confirmed: true }), output('p1', 'paid')];
  socket.says(...frames(goingOn('a1', ...outputs)), DONE);
  await answered;
  const chunks = await reading;
  expect(types(chunks).filter(type => type === 'start')).toHaveLength(1);
  expect(types(chunks).filter(type => type === 'finish')).toHaveLength(2);
  expect(page.transport.canAnswer('c1', 'confirm-p1')).toBe(false);
});

test('each chat has its socket, named by its address when it is resumed', async () => {
  const page = new EnvelopePage({ params: { token: 'x' } });
  void page.send();
  void page.transport.reconnectToStream({ chatId: 'c 2' }).catch(() => {});
  await settled();
  expect(page.opened.map(({ url }) => url)).toEqual([
    'wss://example.test/live?token=x',
    'wss://example.test/live?token=x&chat=c+2',
  ]);
});

test('what runs in the chat is told to who resumes', async () => {
  const page = new EnvelopePage();
  const resuming = page.resume();
  const socket = await page.socket();
  expect(socket.sent).toEqual([{ type: 'ping', version: '1.0', data: {} }]);
  socket.says(PONG, ...frames(reply('a1')), DONE);
  expect(await read(await resuming)).toEqual(reply('a1'));
  expect(page.active).toEqual([]);
});

test('where nothing runs, there is nothing to resume', async () => {
  const page = new EnvelopePage();
  const resuming = page.resume();
  (await page.socket()).says(PONG);
  expect(await resuming).toBeNull();
  expect(await page.resume()).toBeNull();
  expect(page.opened).toHaveLength(1);
});

test('a turn that comes late is a hint, and is resumed from its beginning', async () => {
  const page = new EnvelopePage();
  const resuming = page.resume();
  const socket = await page.socket();
  socket.says(PONG);
  expect(await resuming).toBeNull();
  socket.says(...frames([start('a1'), ...text('One.')]));
  expect(page.active).toEqual(['c1']);
  const stream = await page.resume();
  socket.says(...frames([finish()]), DONE);
  expect(await read(stream)).toEqual(reply('a1', 'One.'));
});

test('a turn that nobody asked for can be read after its end, once', async () => {
  const page = new EnvelopePage();
  const sending = page.send();
  const socket = await page.socket();
  socket.says(...frames(reply('a1')), DONE);
  await read(await sending);
  socket.says(...frames(reply('a2', 'Spoken.')), DONE);
  expect(page.active).toEqual(['c1']);
  expect(await read(await page.resume())).toEqual(reply('a2', 'Spoken.'));
  expect(await page.resume()).toBeNull();
});

test('who types instead of answering gets a turn of its own; the one that waits stays open', async () => {
  const page = new EnvelopePage();
  const first = page.send();
  const socket = await page.socket();
  socket.says(...frames(asking('a1', ...gated('p1'))));
  const waiting = read(await first);
  const second = page.send('never mind');
  await settled();
  socket.says(...frames(reply('a2', 'As you like.')), DONE);
  expect(await read(await second)).toEqual(reply('a2', 'As you like.'));
  socket.says(...frames(goingOn('a1', output('confirm-p1', { confirmed: false }))), DONE);
  expect(types(await waiting)).toContain('tool-output-available');
});

test('a message that answers goes on with its message', async () => {
  const page = new EnvelopePage();
  const part = {
    type: `tool-${CONFIRM}`,
    toolCallId: 'confirm-p1',
    state: 'output-available',
    input: {},
  };
  const message = {
    id: 'a1',
    role: 'assistant',
    parts: [{ ...part, output: { confirmed: true } }],
  };
  const sending = page.send('', { messages: [message], messageId: 'a1' });
  const socket = await page.socket();
  expect(socket.sent[0].data).toMatchObject({ messages: [message], messageId: 'a1' });
  const chunks = goingOn('a1', output('confirm-p1', { confirmed: true }));
  socket.says(...frames(chunks), DONE);
  expect(await read(await sending)).toEqual(chunks);
});

test('an answer to an earlier message is that message, and goes on with it', async () => {
  const page = new EnvelopePage();
  const asked = { id: 'a1', role: 'assistant', parts: [] };
  const later = { id: 'a2', role: 'assistant', parts: [] };
  const sending = page.send('', { messages: [asked, later], messageId: 'a1' });
  const socket = await page.socket();
  expect(socket.sent[0].data.messages).toEqual([asked]);
  socket.says(...frames(goingOn('a1')), DONE);
  expect(await read(await sending)).toEqual(goingOn('a1'));
});

test('a message that says nothing new is not sent, once', async () => {
  const page = new EnvelopePage();
  const sending = page.send();
  const socket = await page.socket();
  socket.says(...frames(asking('a1', call('b1', 'change_bgm'))));
  const reading = read(await sending);
  void page.transport.sendToolResult({ chatId: 'c1', toolCallId: 'b1', result: {} });
  socket.says(...frames([start('a1'), { type: 'abort' }]), DONE);
  await reading;
  const part = { type: 'tool-change_bgm', toolCallId: 'b1', state: 'output-available', input: {} };
  const messages = [{ id: 'a1', role: 'assistant', parts: [{ ...part, output: {} }] }];
  const count = socket.sent.length;
  expect(await read(await page.send('', { messages }))).toEqual([]);
  expect(socket.sent).toHaveLength(count);
  void page.send('', { messages });
  await settled();
  expect(socket.sent).toHaveLength(count + 1);
});

test('a refusal is the error of what was asked', async () => {
  const page = new EnvelopePage();
  const sending = expect(page.send()).rejects.toThrow('A reply is running in this chat.');
  const socket = await page.socket();
  socket.says(refused('A reply is running in this chat.'), DONE);
  await sending;
  const again = page.send();
  await settled();
  socket.says(...frames(reply('a1')), DONE);
  expect(await read(await again)).toEqual(reply('a1'));
});

test('an answer that is refused is told, and the turn goes on', async () => {
  const page = new EnvelopePage();
  const sending = page.send();
  const socket = await page.socket();
  socket.says(...frames(asking('a1', ...gated('p1'))));
  const reading = read(await sending);
  const answered = page.transport.sendToolResult({
    chatId: 'c1',
    toolCallId: 'confirm-p1',
    result: { confirmed: 1 },
  });
  socket.says(refused('Not a boolean.', 'confirm-p1'));
  await expect(answered).rejects.toThrow('Not a boolean.');
  expect(page.errors).toEqual(['Not a boolean.']);
  socket.says(...frames(goingOn('a1', output('confirm-p1', { confirmed: true }))), DONE);
  expect(types(await reading)).not.toContain('error');
});

test('a refusal in the midst of a reply does not break it', async () => {
  const page = new EnvelopePage();
  const sending = page.send();
  const socket = await page.socket();
  socket.says(...frames([start('a1')]));
  const reading = read(await sending);
  const busy = expect(page.send()).rejects.toThrow('Busy.');
  await settled();
  socket.says(refused('Busy.'));
  await busy;
  socket.says(...frames([...text('Hello.'), finish()]), DONE);
  expect(await reading).toEqual(reply('a1'));
});

test('a message that is refused is not taken for an answer that is on its way', async () => {
  const page = new EnvelopePage();
  const sending = page.send();
  const socket = await page.socket();
  socket.says(...frames(asking('a1', ...gated('p1'))));
  const reading = read(await sending);
  const toolCallId = 'confirm-p1';
  const answered = page.transport.sendToolResult({ chatId: 'c1', toolCallId, result: {} });
  const busy = expect(page.send()).rejects.toThrow('Busy.');
  await settled();
  socket.says(refused('Busy.'));
  await busy;
  socket.says(...frames(goingOn('a1', output('confirm-p1', { confirmed: true }))), DONE);
  await answered;
  await reading;
});

test('an answer that is given again is done when its turn is', async () => {
  const page = new EnvelopePage();
  const sending = page.send();
  const socket = await page.socket();
  socket.says(...frames(asking('a1', ...gated('p1'))));
  const reading = read(await sending);
  const answer = { chatId: 'c1', toolCallId: 'confirm-p1', result: { confirmed: true } };
  const first = page.transport.sendToolResult(answer);
  const chunks = goingOn('a1', output('confirm-p1', { confirmed: true }));
  socket.says(...frames(chunks.slice(0, 2)));
  await first;
  // The server is silent: what follows is the answer to both.
  const second = page.transport.sendToolResult(answer);
  socket.says(...frames(chunks.slice(2)), DONE);
  await second;
  await reading;
  expect(page.errors).toEqual([]);
});

test('a reply that breaks while something else was asked ends with its error', async () => {
  const page = new EnvelopePage();
  const sending = page.send();
  const socket = await page.socket();
  socket.says(...frames([start('a1')]));
  const reading = read(await sending);
  void page.send().catch(() => {});
  await settled();
  const error = { type: 'error', errorText: 'The model failed.' };
  socket.says(...frames([error]), DONE);
  expect(await reading).toEqual([start('a1'), error]);
});

test('a reply that breaks before it begins is the error of what was asked', async () => {
  const page = new EnvelopePage();
  const failed = expect(page.send()).rejects.toThrow('The server failed.');
  const socket = await page.socket();
  socket.says(...frames([{ type: 'error', errorText: 'The server failed.' }]));
  await failed;
});

test('a reply that breaks ends with its error', async () => {
  const page = new EnvelopePage();
  const sending = page.send();
  const socket = await page.socket();
  const error = { type: 'error', errorText: 'The model failed.' };
  socket.says(...frames([start('a1'), error]), DONE);
  expect(await read(await sending)).toEqual([start('a1'), error]);
});

test.each(['{', 'data: {"no":"type"}\n\n', 'data: nonsense\n\n', '[]', new ArrayBuffer(2)])(
  'what cannot be read, %s, is a lost network: a reply has a hole',
  async frame => {
    const page = new EnvelopePage();
    const sending = page.send();
    const socket = await page.socket();
    socket.says(...frames([start('a1')]));
    const stream = await sending;
    (socket as any).onmessage({ data: frame });
    await expect(read(stream)).rejects.toThrow(/network/);
    expect(socket.closedWith).toBe(4400);
    void page.send();
    await settled();
    expect(page.opened).toHaveLength(2);
  },
);

test.each(['{"type":"news","version":"1.0"}', ': keep-alive\n\n'])(
  'what a newer server may say, %s, is left alone',
  async frame => {
    const page = new EnvelopePage();
    const sending = page.send();
    const socket = await page.socket();
    (socket as any).onmessage({ data: frame });
    socket.says(...frames(reply('a1')), DONE);
    expect(await read(await sending)).toEqual(reply('a1'));
  },
);

test('a socket that is lost fails its turns as a lost network; the next resume opens another', async () => {
  const page = new EnvelopePage();
  const sending = page.send();
  const socket = await page.socket();
  socket.says(...frames(asking('a1', ...gated('p1'))));
  const stream = await sending;
  const answer = page.transport.sendToolResult({
    chatId: 'c1',
    toolCallId: 'confirm-p1',
    result: {},
  });
  socket.lose(1006);
  await expect(read(stream)).rejects.toThrow(TypeError);
  await expect(answer).rejects.toThrow(/network/);
  const resuming = page.resume();
  const other = await page.socket();
  expect(other).not.toBe(socket);
  other.says(...frames(asking('a1', ...gated('p1'))));
  const reading = read(await resuming);
  other.says(DONE);
  expect(await reading).toEqual(asking('a1', ...gated('p1')));
});

test('a server that cannot be reached fails what was asked', async () => {
  const page = new EnvelopePage();
  const sending = expect(page.send()).rejects.toThrow(/network.*could not be opened/);
  await settled();
  page.opened[0]!.lose(1006);
  await sending;
});

test('stopping ends the listening; the turn can be resumed from its beginning', async () => {
  const page = new EnvelopePage();
  const stop = new AbortController();
  const sending = page.send('', { abortSignal: stop.signal });
  const socket = await page.socket();
  socket.says(...frames([start('a1')]));
  const reading = read(await sending);
  stop.abort(new Error('stopped'));
  await expect(reading).rejects.toThrow('stopped');
  socket.says(...frames(text('Hello.')));
  const stream = await page.resume();
  socket.says(...frames([finish()]), DONE);
  expect(await read(stream)).toEqual(reply('a1'));
  expect(socket.sent.map(({ type }) => type)).toEqual(['message']);
});

test('a turn that was left before its end can be read after it', async () => {
  const page = new EnvelopePage();
  const sending = page.send();
  const socket = await page.socket();
  socket.says(...frames([start('a1')]));
  await (await sending).cancel();
  socket.says(...frames([...text('Hello.'), finish()]), DONE);
  expect(await read(await page.resume())).toEqual(reply('a1'));
  expect(await page.resume()).toBeNull();
});

test('a message can be said beside the chat; its turn is a hint', async () => {
  const page = new EnvelopePage();
  const said = page.transport.sendMessage('c1', 'hello');
  const socket = await page.socket();
  expect(socket.sent[0].data.messages).toMatchObject([
    { role: 'user', parts: [{ type: 'text', text: 'hello' }] },
  ]);
  socket.says(...frames(reply('a1')), DONE);
  await said;
  expect(page.active).toEqual(['c1']);
  expect(await read(await page.resume())).toEqual(reply('a1'));
});

test('interrupting is a frame', async () => {
  const page = new EnvelopePage();
  void page.send();
  const socket = await page.socket();
  page.transport.interrupt('c1');
  expect(socket.sent.at(-1)).toEqual({ type: 'interrupt', version: '1.0', data: {} });
});

test('the output of a call is sent at once, while the reply that asks for it is told', async () => {
  const page = new EnvelopePage();
  const sending = page.send();
  const socket = await page.socket();
  const [begin, step, ...rest] = asking('a1', call('b1', 'change_bgm'));
  socket.says(...frames([begin!, step!, rest[0]!]));
  void read(await sending);
  void page.transport.sendToolResult({ chatId: 'c1', toolCallId: 'b1', result: {} });
  expect(socket.sent.map(({ type }) => type)).toEqual(['message', 'tool_result']);
});

test('closing fails what runs and closes the sockets', async () => {
  const page = new EnvelopePage();
  const sending = page.send();
  const socket = await page.socket();
  socket.says(...frames([start('a1')]));
  const stream = await sending;
  page.transport.close();
  await expect(read(stream)).rejects.toThrow('closed');
  expect(socket.closedWith).toBe(1000);
});

test('sockets of chats in which nothing happens do not pile up', async () => {
  const page = new EnvelopePage();
  for (let index = 0; index < 10; index += 1) {
    const resuming = page.transport.reconnectToStream({ chatId: `c${index}` });
    (await page.socket()).says(PONG);
    await resuming;
  }
  expect(page.opened.filter(({ closedWith }) => closedWith === undefined)).toHaveLength(6);
});
