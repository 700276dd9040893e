import { handleConfirmation, sendWhenAnswered } from 'adk-stream-client';
import { describe, expect, test } from 'vitest';

import { createChat, toolParts, VERSIONS } from './chats.js';
import { approval, asking, call, finish, gated, goingOn, output, start } from './replies.js';
import { ScriptedTransport } from './scriptedTransport.js';
import { settled, until } from './waiting.js';

const showing = (...parts: object[]): any => ({
  messages: [{ id: 'a1', role: 'assistant', parts: [{ type: 'step-start' }, ...parts] }],
});
const tool = (name: string, state: string, fields = {}) => ({
  type: `tool-${name}`,
  toolCallId: name,
  state,
  input: {},
  ...fields,
});
const responded = (approved: boolean, name = 'pay') =>
  tool(name, 'approval-responded', { approval: { id: `q-${name}`, approved } });
const requested = (name = 'pay') =>
  tool(name, 'approval-requested', { approval: { id: `q-${name}` } });
const confirmation = (name: string, fields = {}) => ({
  ...tool('adk_request_confirmation', 'input-available', fields),
  toolCallId: `q-${name}`,
  input: { originalFunctionCall: { id: name, name, args: {} } },
});
const confirmed = (name: string, yes: boolean, more = {}) =>
  confirmation(name, { state: 'output-available', output: { confirmed: yes, ...more } });
const held = (name: string) => tool(name, 'input-available', { providerExecuted: true });

test.each([
  ['an approval', [responded(true)]],
  ['a denial', [responded(false)]],
  ['both of a step', [responded(true, 'a'), responded(false, 'b')]],
  [
    'one, when the server ran the other',
    [responded(true), tool('add', 'output-available', { output: 3 })],
  ],
  ['a confirmation', [held('pay'), confirmed('pay', true)]],
  ['a denial by confirmation', [held('pay'), confirmed('pay', false)]],
  ['what the browser made of a call', [tool('bgm', 'output-available', { output: 1 })]],
  ['that the browser failed', [tool('bgm', 'output-error', { errorText: 'No.' })]],
  [
    'a confirmed call that the browser ran',
    [tool('bgm', 'output-available', { output: 1 }), confirmed('bgm', true)],
  ],
  [
    'an approved call that the browser ran',
    [tool('bgm', 'output-available', { output: 1, approval: { id: 'q', approved: true } })],
  ],
  ['a denied browser tool', [responded(false, 'bgm')]],
  [
    'an answer to a question of the agent',
    [tool('adk_request_input', 'output-available', { output: 'yes' })],
  ],
])('sends %s, once', (_, parts) => {
  const shouldSend = sendWhenAnswered({ browserTools: ['bgm'] });
  expect(shouldSend(showing(...parts))).toBe(true);
  expect(shouldSend(showing(...parts))).toBe(false);
});

test.each([
  ['one of two is answered', [responded(true, 'a'), requested('b')]],
  ['one of two is confirmed', [held('a'), confirmed('a', true), held('b'), confirmation('b')]],
  ['the browser still runs what was approved', [responded(true, 'bgm')]],
  [
    'the browser still runs what was confirmed',
    [tool('bgm', 'input-available'), confirmed('bgm', true)],
  ],
  ['the browser still runs another', [responded(true), tool('bgm', 'input-available')]],
  [
    'an output is preliminary',
    [responded(true), tool('x', 'output-available', { output: 1, preliminary: true })],
  ],
  ['the server ran everything', [tool('add', 'output-available', { output: 3 })]],
  [
    'the server says what became of it',
    [tool('pay', 'output-error', { errorText: 'No.' }), confirmed('pay', false)],
  ],
  ['nobody answered in time', [held('pay'), confirmed('pay', false, { outcome: 'expired' })]],
  [
    'it was denied and the server knows',
    [tool('pay', 'output-denied', { approval: { id: 'q', approved: false } })],
  ],
  ['there is nothing to answer', [{ type: 'text', text: 'Hello.' }]],
  ['the model went on', [responded(true), { type: 'step-start' }, { type: 'text', text: 'Done.' }]],
])('holds back when %s', (_, parts) => {
  expect(sendWhenAnswered({ browserTools: ['bgm'] })(showing(...parts))).toBe(false);
});

test('holds back when the user spoke last, or nobody', () => {
  const shouldSend = sendWhenAnswered();
  expect(shouldSend({ messages: [] })).toBe(false);
  const messages: any = [
    ...showing(responded(true)).messages,
    { id: 'u', role: 'user', parts: [] },
  ];
  expect(shouldSend({ messages })).toBe(false);
});

test('the same answer to a question that is asked again is sent again', () => {
  const shouldSend = sendWhenAnswered();
  expect(shouldSend(showing(responded(true)))).toBe(true);
  expect(shouldSend(showing(requested()))).toBe(false);
  expect(shouldSend(showing(responded(true)))).toBe(true);
});

describe.each(Object.keys(VERSIONS))('a chat of %s', version => {
  const answer = (chat: any, index: number, approved: boolean) => {
    const { addToolOutput, addToolApprovalResponse } = chat;
    return handleConfirmation(toolParts(chat)[index], approved, {
      addToolOutput,
      addToolApprovalResponse,
    });
  };

  test.each([
    ['says nothing', []],
    ['ends at once', [start('a1'), finish()]],
    ['says something in the same step', [start('a1'), { type: 'data-x', data: 1 }, finish()]],
    [
      'runs another tool in the same step',
      [start('a1'), call('x', 'add'), output('x', 1), finish()],
    ],
  ])('does not send the same again when the reply %s', async (_, reply) => {
    for (const [calls, index] of [
      [approval('p1'), 0],
      [gated('p1'), 1],
    ] as const) {
      const transport = new ScriptedTransport(asking('a1', ...calls), reply);
      const chat = createChat(version, { transport, sendAutomaticallyWhen: sendWhenAnswered() });
      await chat.sendMessage({ text: 'pay' });
      await answer(chat, index, false);
      await until(() => transport.sends.length === 2 && chat.status === 'ready');
      for (let turns = 0; turns < 5; turns += 1) await settled();
      expect(transport.sends).toHaveLength(2);
      expect(chat.status).toBe('ready');
    }
  });

  test('sends two answers of a step together', async () => {
    const transport = new ScriptedTransport(
      asking('a1', ...approval('p1'), ...approval('p2')),
      goingOn('a1', output('p1', 1), { type: 'tool-output-denied', toolCallId: 'p2' }),
    );
    const chat = createChat(version, { transport, sendAutomaticallyWhen: sendWhenAnswered() });
    await chat.sendMessage({ text: 'pay both' });
    await answer(chat, 0, true);
    await settled();
    expect(transport.sends).toHaveLength(1);
    await answer(chat, 1, false);
    await until(() => transport.sends.length === 2 && chat.status === 'ready');
    expect(toolParts(chat).map(part => part.state)).toEqual(['output-available', 'output-denied']);
  });
});
