import { handleConfirmation, sendWhenAnswered } from 'adk-stream-client';
import { describe, expect, test } from 'vitest';

import { createChat, lastText, toolParts, VERSIONS } from './chats.js';
import { DONE, EnvelopePage, frames } from './envelopePage.js';
import { approval, asking, CONFIRM, gated, goingOn, output } from './replies.js';
import { ScriptedTransport } from './scriptedTransport.js';
import { settled, until } from './waiting.js';

const ID = 'adk-4f021c34-5ebd_Ω';
const question = (fields = {}) => ({
  type: `tool-${CONFIRM}`,
  toolCallId: ID,
  state: 'input-available',
  input: { originalFunctionCall: { id: 'call-1', name: 'pay', args: {} } },
  ...fields,
});
const request = (fields = {}) => ({
  type: 'tool-pay',
  toolCallId: 'call-1',
  state: 'approval-requested',
  input: {},
  approval: { id: ID },
  ...fields,
});

/** Functions of a chat and a socket that note what they were called with. */
function noting(canAnswer?: boolean) {
  const calls: [string, any][] = [];
  const note = (name: string) => (given: any) => void calls.push([name, given]);
  return {
    calls,
    chatId: 'c1',
    addToolOutput: note('addToolOutput'),
    addToolApprovalResponse: note('addToolApprovalResponse'),
    ...(canAnswer !== undefined && {
      websocket: { sendToolResult: note('sendToolResult'), canAnswer: () => canAnswer },
    }),
  };
}

test('a confirmation is answered with exactly the id that it came with', async () => {
  const transport = noting();
  expect(await handleConfirmation(question(), true, transport)).toBe('chat');
  expect(transport.calls).toEqual([
    ['addToolOutput', { tool: CONFIRM, toolCallId: ID, output: { confirmed: true } }],
  ]);
});

test('an approval is answered with exactly the id that it came with', async () => {
  const transport = noting();
  expect(await handleConfirmation(request(), false, transport, 'Too much.')).toBe('chat');
  expect(transport.calls).toEqual([
    ['addToolApprovalResponse', { id: ID, approved: false, reason: 'Too much.' }],
  ]);
});

test('the socket is preferred, and the part shows the answer all the same', async () => {
  const transport = noting(true);
  expect(await handleConfirmation(question(), false, transport, 'No.')).toBe('websocket');
  const result = { confirmed: false, reason: 'No.' };
  expect(transport.calls).toEqual([
    ['sendToolResult', { chatId: 'c1', toolCallId: ID, toolName: CONFIRM, result }],
    ['addToolOutput', { tool: CONFIRM, toolCallId: ID, output: result }],
  ]);
});

test('an approval goes over the socket as the confirmation that it is', async () => {
  const transport = noting(true);
  await handleConfirmation(request(), true, transport);
  expect(transport.calls[0]).toEqual([
    'sendToolResult',
    { chatId: 'c1', toolCallId: ID, toolName: CONFIRM, result: { confirmed: true } },
  ]);
});

test('a socket on which the call does not wait is left alone', async () => {
  const transport = noting(false);
  expect(await handleConfirmation(question(), true, transport)).toBe('chat');
  expect(transport.calls.map(([name]) => name)).toEqual(['addToolOutput']);
});

test('without the functions of a chat there is only the socket', async () => {
  const { calls, chatId, websocket } = noting(false);
  expect(await handleConfirmation(question(), true, { chatId, websocket })).toBe('websocket');
  expect(calls).toHaveLength(1);
});

test('a double click sends once', async () => {
  const transport = noting(true);
  const part = question();
  const clicks = [part, part, { ...part }].map(each => handleConfirmation(each, true, transport));
  expect(await Promise.all(clicks)).toEqual(['websocket', 'ignored', 'ignored']);
  expect(await handleConfirmation(part, false, transport)).toBe('ignored');
  expect(transport.calls.map(([name]) => name)).toEqual(['sendToolResult', 'addToolOutput']);
});

test('a question that is told anew can be answered anew', async () => {
  const transport = noting(true);
  await handleConfirmation(question(), true, transport);
  expect(await handleConfirmation(question(), true, transport)).toBe('websocket');
});

test.each([
  question({ state: 'output-available', output: { confirmed: true } }),
  question({ state: 'input-streaming' }),
  request({ state: 'approval-responded' }),
  request({ state: 'output-available', output: 1 }),
  { type: 'tool-pay', toolCallId: 'x', state: 'input-available', input: {} },
])('what asks nothing gets no answer: $type $state', async part => {
  const transport = noting(true);
  expect(await handleConfirmation(part, true, transport)).toBe('ignored');
  expect(transport.calls).toEqual([]);
});

test('an answer that fails can be given again', async () => {
  const part = question();
  const failing = { addToolOutput: () => Promise.reject(new Error('offline')) };
  await expect(handleConfirmation(part, true, failing)).rejects.toThrow('offline');
  const transport = noting();
  expect(await handleConfirmation(part, true, transport)).toBe('chat');
});

describe.each(Object.keys(VERSIONS))('a chat of %s', version => {
  test('answers on the open stream, and the card settles at once', async () => {
    const page = new EnvelopePage();
    const chat = createChat(version, {
      transport: page.transport,
      sendAutomaticallyWhen: sendWhenAnswered(),
    });
    const sending = chat.sendMessage({ text: 'pay 5' });
    const socket = await page.socket();
    socket.says(...frames(asking('a1', ...gated('p1'))));
    await until(() => toolParts(chat).length === 2);
    expect(chat.status).toBe('streaming');
    const { addToolOutput, addToolApprovalResponse } = chat;
    const answers = {
      chatId: 'c1',
      websocket: page.transport,
      addToolOutput,
      addToolApprovalResponse,
    };
    expect(await handleConfirmation(toolParts(chat)[1], true, answers)).toBe('websocket');
    expect(toolParts(chat)[1]).toMatchObject({
      state: 'output-available',
      output: { confirmed: true },
    });
    const outputs = [output('confirm-p1', { confirmed: true }), output('p1', 'paid')];
    socket.says(...frames(goingOn('a1', ...outputs)), DONE);
    await sending;
    await settled();
    expect(chat.status).toBe('ready');
    expect(lastText(chat)).toBe('Done.');
    expect(chat.messages).toHaveLength(2);
    expect(socket.sent.map(({ type }) => type)).toEqual(['message', 'tool_result']);
  });

  test('answers in a second request over event streams, in both profiles', async () => {
    for (const calls of [gated('p1'), approval('p1')]) {
      const outputs = calls[1]!.type.startsWith('tool-input')
        ? [output('confirm-p1', { confirmed: true })]
        : [];
      const transport = new ScriptedTransport(
        asking('a1', ...calls),
        goingOn('a1', ...outputs, output('p1', 'paid')),
      );
      const chat = createChat(version, { transport, sendAutomaticallyWhen: sendWhenAnswered() });
      await chat.sendMessage({ text: 'pay 5' });
      const { addToolOutput, addToolApprovalResponse } = chat;
      await handleConfirmation(toolParts(chat).at(-1), true, {
        addToolOutput,
        addToolApprovalResponse,
      });
      await until(() => transport.sends.length === 2 && chat.status === 'ready');
      expect(lastText(chat)).toBe('Done.');
      expect(transport.sends[1]).toMatchObject({ messageId: 'a1' });
    }
  });
});
