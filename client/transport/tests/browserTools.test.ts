import {
  BrowserTools,
  changeBgm,
  getLocation,
  handleConfirmation,
  sendWhenAnswered,
} from 'adk-stream-client';
import { afterEach, describe, expect, test, vi } from 'vitest';

import { createChat, lastText, toolParts, VERSIONS } from './chats.js';
import { DONE, EnvelopePage, frames } from './envelopePage.js';
import { asking, call, finish, gated, goingOn, heldBack, output, start } from './replies.js';
import { ScriptedTransport } from './scriptedTransport.js';
import { settled, until } from './waiting.js';

afterEach(() => vi.unstubAllGlobals());

/** Messages whose last one shows these parts. */
const showing = (...parts: object[]): any[] => [{ id: 'a1', role: 'assistant', parts }];
const bgm = (fields = {}) => ({
  type: 'tool-change_bgm',
  toolCallId: 'b1',
  state: 'input-available',
  input: { track: 'jazz' },
  ...fields,
});
const question = (fields = {}) => ({
  type: 'tool-adk_request_confirmation',
  toolCallId: 'q1',
  state: 'input-available',
  input: { originalFunctionCall: { id: 'b1', name: 'change_bgm', args: {} } },
  ...fields,
});

function noting(run: (input: any) => unknown = ({ track }) => ({ playing: track })) {
  const outputs: any[] = [];
  const runs: any[] = [];
  const tools = new BrowserTools({
    tools: {
      change_bgm: (input, { toolCallId }) => {
        runs.push([toolCallId, input]);
        return run(input);
      },
    },
    transport: () => ({ addToolOutput: given => void outputs.push(given) }),
  });
  return { tools, outputs, runs };
}

test('a call that waits is run once, with its input, and its output is given', async () => {
  const { tools, outputs, runs } = noting();
  for (let times = 0; times < 3; times += 1) tools.look(showing(bgm()), 'ready');
  await settled();
  tools.look(showing(bgm()), 'ready');
  expect(runs).toEqual([['b1', { track: 'jazz' }]]);
  expect(outputs).toEqual([{ tool: 'change_bgm', toolCallId: 'b1', output: { playing: 'jazz' } }]);
  expect(tools.hasRun('b1')).toBe(true);
});

test('a call that the socket knows before its input is drawn is run with the input', async () => {
  const runs: unknown[] = [];
  const tools = new BrowserTools({
    tools: { change_bgm: input => void runs.push(input) },
    transport: { chatId: 'c1', websocket: { mayRun: async () => true, sendToolResult: async () => {} } as never },
  });
  tools.look(showing(bgm({ state: 'input-streaming', input: undefined })), 'streaming');
  await settled();
  tools.look(showing(bgm()), 'streaming');
  await settled();
  expect(runs).toEqual([{ track: 'jazz' }]);
});

test('a tool that fails is told as an error, and nothing at all as null', async () => {
  const failing = noting(() => {
    throw new Error('No speaker.');
  });
  failing.tools.look(showing(bgm()), 'ready');
  await settled();
  expect(failing.outputs).toEqual([
    { tool: 'change_bgm', toolCallId: 'b1', state: 'output-error', errorText: 'No speaker.' },
  ]);
  const silent = noting(() => undefined);
  silent.tools.look(showing(bgm()), 'ready');
  await settled();
  expect(silent.outputs[0].output).toBeNull();
});

test.each([
  ['a reply that streams may still ask for an approval', [bgm()], 'streaming'],
  ['a tool that others run', [{ ...bgm(), type: 'tool-pay' }], 'ready'],
  ['what the provider runs', [bgm({ providerExecuted: true })], 'ready'],
  ['an input that is not complete', [bgm({ state: 'input-streaming' })], 'ready'],
  [
    'what waits for its approval',
    [bgm({ state: 'approval-requested', approval: { id: 'q' } })],
    'ready',
  ],
  [
    'what is denied',
    [bgm({ state: 'approval-responded', approval: { id: 'q', approved: false } })],
    'ready',
  ],
  ['what was asked for and is shown again', [bgm({ approval: { id: 'q' } })], 'ready'],
  ['what waits for its confirmation', [bgm(), question()], 'ready'],
  [
    'what is denied by its confirmation',
    [bgm(), question({ state: 'output-available', output: { confirmed: false } })],
    'ready',
  ],
  [
    'what was confirmed, and expired since',
    [
      bgm(),
      question({ state: 'output-available', output: { confirmed: true, outcome: 'expired' } }),
    ],
    'ready',
  ],
])('is not run: %s', async (_, parts, status) => {
  const { tools, runs } = noting();
  tools.look(showing(...parts), status as 'ready');
  await settled();
  expect(runs).toEqual([]);
});

test.each([
  ['approved', [bgm({ state: 'approval-responded', approval: { id: 'q', approved: true } })]],
  ['approved, as the server says', [bgm({ approval: { id: 'q', approved: true } })]],
  ['confirmed', [bgm(), question({ state: 'output-available', output: { confirmed: true } })]],
  ['of a name that only the server knew', [bgm({ type: 'dynamic-tool', toolName: 'change_bgm' })]],
])('is run: what is %s', async (_, parts) => {
  const { tools, runs } = noting();
  tools.look(showing(...parts), 'ready');
  await settled();
  expect(runs).toHaveLength(1);
});

test('what is told anew after a lost connection is not run again, but answered again', async () => {
  const { tools, outputs, runs } = noting();
  tools.look(showing(bgm()), 'ready');
  await settled();
  tools.look(showing(bgm({ state: 'output-available', output: {} })), 'ready');
  tools.look(showing(bgm()), 'ready');
  expect(runs).toHaveLength(1);
  expect(outputs).toHaveLength(2);
});

test('only what the last message waits for is run', async () => {
  const { tools, runs } = noting();
  const user = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'no' }] };
  tools.look([...showing(bgm()), user] as any, 'ready');
  await settled();
  expect(runs).toEqual([]);
});

describe.each(Object.keys(VERSIONS))('in a chat of %s', version => {
  /** A page whose chat looks for calls on every change. */
  function open(transport: any, websocket?: EnvelopePage['transport']) {
    const runs: string[] = [];
    const tools: BrowserTools = new BrowserTools({
      tools: { change_bgm: ({ amount }) => void runs.push(`played ${amount}`) },
      transport: () => ({ chatId: 'c1', websocket, addToolOutput: chat.addToolOutput }),
    });
    const chat: any = createChat(version, {
      transport,
      sendAutomaticallyWhen: sendWhenAnswered({ browserTools: tools }),
      onChange: () => tools.look(chat.messages, chat.status),
    });
    return { chat, tools, runs };
  }

  test('a call is run while the stream is open, and answered there', async () => {
    const page = new EnvelopePage();
    const { chat, runs } = open(page.transport, page.transport);
    const sending = chat.sendMessage({ text: 'play' });
    const socket = await page.socket();
    socket.says(...frames(asking('a1', call('b1', 'change_bgm'))));
    await until(() => socket.sent.length === 2);
    expect(chat.status).toBe('streaming');
    expect(socket.sent[1].data).toEqual({ toolCallId: 'b1', toolName: 'change_bgm', result: null });
    socket.says(...frames(goingOn('a1', output('b1', null))), DONE);
    await sending;
    expect(runs).toEqual(['played 5']);
    expect(lastText(chat)).toBe('Done.');
    expect(socket.sent).toHaveLength(2);
  });

  test('a call whose approval comes a moment later is not run before', async () => {
    const page = new EnvelopePage();
    const { chat, runs } = open(page.transport, page.transport);
    const sending = chat.sendMessage({ text: 'play' });
    const socket = await page.socket();
    const [begin, step, tool, ...rest] = asking('a1', ...gated('b1', 'change_bgm', {}));
    socket.says(...frames([begin!, step!, tool!]));
    await until(() => toolParts(chat).length === 1);
    await settled();
    socket.says(...frames(rest));
    await until(() => toolParts(chat).length === 2);
    await settled();
    expect(runs).toEqual([]);
    const { addToolOutput } = chat;
    const answers = { chatId: 'c1', websocket: page.transport, addToolOutput };
    await handleConfirmation(toolParts(chat)[1], true, answers);
    await settled();
    // The page shows it as approved; the server has not said so.
    expect(runs).toEqual([]);
    socket.says(...frames(asking('a1', output('confirm-b1', { confirmed: true }))));
    await until(() => socket.sent.length === 3);
    expect(runs).toEqual(['played 5']);
    socket.says(...frames(goingOn('a1', output('b1', null))), DONE);
    await sending;
    expect(chat.status).toBe('ready');
    expect(socket.sent).toHaveLength(3);
  });

  test.each([
    ['at once', [call('b1', 'change_bgm')]],
    ['after approval', heldBack('b1', 'change_bgm')],
    ['after confirmation', gated('b1', 'change_bgm', {})],
  ])('over event streams a call is run %s, and sent with its approval', async (_, calls) => {
    const transport = new ScriptedTransport(asking('a1', ...calls), goingOn('a1'));
    const { chat, runs } = open(transport);
    await chat.sendMessage({ text: 'play' });
    const { addToolOutput, addToolApprovalResponse } = chat;
    const ask = toolParts(chat).at(-1);
    if (calls.length > 1)
      await handleConfirmation(ask, true, { addToolOutput, addToolApprovalResponse });
    await until(() => transport.sends.length === 2 && chat.status === 'ready');
    await settled();
    expect(runs).toEqual(['played 5']);
    expect(transport.sends).toHaveLength(2);
    expect(
      transport.sends[1].messages.at(-1).parts.find((part: any) => part.toolCallId === 'b1'),
    ).toMatchObject({
      state: 'output-available',
      output: null,
    });
  });
});

test.each(Object.keys(VERSIONS))(
  'in a chat of %s that sends an approval at once, a call is run once',
  async version => {
    const released = [start('a1'), call('b1', 'change_bgm'), finish('tool-calls')];
    const transport = new ScriptedTransport(
      asking('a1', ...heldBack('b1', 'change_bgm')),
      released,
      goingOn('a1'),
    );
    const runs: unknown[] = [];
    const tools = new BrowserTools({
      tools: { change_bgm: ({ amount }) => void runs.push(amount) },
      transport: () => ({ addToolOutput: chat.addToolOutput }),
    });
    const isAnswered = ({ state }: any) =>
      state === 'approval-responded' || state === 'output-available';
    const chat: any = createChat(version, {
      transport,
      sendAutomaticallyWhen: ({ messages }: any) =>
        toolParts(chat).some(isAnswered) && !messages.at(-1).parts.some(({ type }: any) => type === 'text'),
      onChange: () => tools.look(chat.messages, chat.status),
    });
    await chat.sendMessage({ text: 'play' });
    await chat.addToolApprovalResponse({ id: 'approval-b1', approved: true });
    await until(() => lastText(chat) === 'Done.' && chat.status === 'ready');
    expect(runs).toEqual([5]);
    expect(toolParts(chat)[0]).toMatchObject({ state: 'output-available', output: null });
  },
);

test('the location is what the browser says', async () => {
  const coords = { latitude: 35.6, longitude: 139.7, accuracy: 20, speed: null };
  vi.stubGlobal('navigator', {
    geolocation: { getCurrentPosition: (yes: any) => yes({ coords }) },
  });
  expect(await getLocation()()).toEqual({ latitude: 35.6, longitude: 139.7, accuracy: 20 });
});

test('a location that the user does not tell is an error', async () => {
  const geolocation = {
    getCurrentPosition: (_: any, no: any) => no({ code: 1, message: 'denied' }),
  };
  vi.stubGlobal('navigator', { geolocation });
  await expect(getLocation()()).rejects.toThrow('did not allow');
  vi.stubGlobal('navigator', {});
  await expect(getLocation()()).rejects.toThrow('cannot tell');
});

test('music is changed by the player that the page has', async () => {
  const played: string[] = [];
  const change = changeBgm({ play: track => void played.push(track) });
  expect(await change({ track: 2 })).toEqual({ playing: 2 });
  expect(played).toEqual(['2']);
});
