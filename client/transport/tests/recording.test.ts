import {
  EnvelopeChatTransport,
  parseRecording,
  Recorder,
  recordingTransport,
  redact,
  ReplayTransport,
} from 'adk-stream-client';
import { describe, expect, test, vi } from 'vitest';

import { createChat, lastText, VERSIONS } from './chats.js';
import { read } from './envelopePage.js';
import { asking, finish, gated, goingOn, output, start, text } from './replies.js';
import { ScriptedTransport } from './scriptedTransport.js';

const HEADER = '{"recording":1,"by":"adk-stream-protocol","startedAt":"2026-11-16T09:00:00.000Z"}';
const REPLY = [start('a1'), ...text('Hello.'), finish()];

describe.each(Object.keys(VERSIONS))('a chat of %s', version => {
  test('is recorded, written, read and played to the same messages', async () => {
    const recorder = new Recorder();
    const scripted = new ScriptedTransport(REPLY, [start('a2'), ...text('Bye.'), finish()]);
    const chat = createChat(version, { transport: recordingTransport(scripted, recorder) });
    await chat.sendMessage({ text: 'hi' });
    await chat.sendMessage({ text: 'bye' });
    const transport = new ReplayTransport(parseRecording(recorder.toJsonl()));
    const again = createChat(version, { transport });
    await again.sendMessage({ text: 'anything' });
    await again.sendMessage({ text: 'else' });
    expect(again.messages.map(({ parts }) => parts).slice(1, 2)).toEqual([chat.messages[1]!.parts]);
    expect(lastText(again)).toBe('Bye.');
    await again.sendMessage({ text: 'more' });
    expect(again.error?.message).toBe('The recording has no answer to message 3.');
    transport.rewind();
    again.messages = [];
    await again.sendMessage({ text: 'again' });
    expect(lastText(again)).toBe('Hello.');
  });
});

test('each entry says when, which way, of which chat and of which request', async () => {
  let now = 1_000;
  const recorder = new Recorder({ now: () => now });
  const transport = recordingTransport(new ScriptedTransport(REPLY), recorder);
  now += 1_234;
  const message = { id: 'u1', role: 'user', parts: [] };
  const options: any = {
    chatId: 'c1',
    trigger: 'submit-message',
    messages: [{ ...message, id: 'u0' }, message],
  };
  await read(await transport.sendMessages(options));
  expect(await transport.reconnectToStream({ chatId: 'c1' })).toBeNull();
  const [first, second, third, ...rest] = recorder.entries;
  const place = { at: 1.234, chat: 'c1', request: '1' };
  expect(first).toEqual({
    ...place,
    direction: 'in',
    type: 'send',
    trigger: 'submit-message',
    messages: [message],
  });
  expect(second).toEqual({ ...place, direction: 'out', type: 'start' });
  expect(third).toEqual({ ...place, direction: 'out', type: 'chunk', chunk: REPLY[0] });
  expect(rest.slice(-3)).toMatchObject([
    { direction: 'out', type: 'end', request: '1' },
    { direction: 'in', type: 'resume', request: '2' },
    { direction: 'out', type: 'no-active', request: '2' },
  ]);
  const [header] = recorder.toJsonl().split('\n');
  expect(JSON.parse(header!)).toEqual({
    recording: 1,
    by: 'adk-stream-client',
    startedAt: '1970-01-01T00:00:01.000Z',
  });
});

test('refusals, errors and what is left are recorded, and played as errors', async () => {
  const recorder = new Recorder();
  const broken = {
    sends: 0,
    async sendMessages() {
      if (this.sends++ === 0) throw new Error('offline');
      return new ReadableStream({
        start(controller) {
          controller.enqueue(start('a1') as any);
          controller.error(new Error('lost'));
        },
      });
    },
    async reconnectToStream() {
      return new ReadableStream();
    },
  };
  const transport = recordingTransport(broken as any, recorder);
  const options: any = { chatId: 'c1', trigger: 'submit-message', messages: [] };
  await expect(transport.sendMessages(options)).rejects.toThrow('offline');
  await expect(read(await transport.sendMessages(options))).rejects.toThrow('lost');
  await (await transport.reconnectToStream({ chatId: 'c1' }))!.cancel();
  expect(recorder.entries.map(({ type }) => type)).toEqual([
    'send',
    'error',
    'send',
    'start',
    'error',
    'resume',
    'start',
    'abort',
  ]);
  const replay = new ReplayTransport(recorder.recording);
  await expect(read(await replay.sendMessages({ abortSignal: undefined }))).rejects.toThrow(
    'offline',
  );
});

test('what a transport has besides is there, and its answers are recorded', async () => {
  const recorder = new Recorder();
  const sent: string[] = [];
  class Socket {
    readyState = 1;
    send(frame: string) {
      sent.push(JSON.parse(frame).type);
    }
    close() {}
  }
  const envelopes = new EnvelopeChatTransport({
    url: 'ws://x.test/live',
    webSocket: Socket as any,
  });
  const transport = recordingTransport(envelopes, recorder);
  expect(transport).toBeInstanceOf(EnvelopeChatTransport);
  expect(transport.resumeStreamIsReplay).toBe(true);
  expect(transport.canAnswer('c1', 'x')).toBe(false);
  transport
    .sendToolResult({ chatId: 'c1', toolCallId: 'q', result: { confirmed: true } })
    .catch(() => {});
  transport.interrupt('c1');
  expect(recorder.entries).toMatchObject([
    {
      direction: 'in',
      type: 'tool_result',
      chat: 'c1',
      data: { toolCallId: 'q', result: { confirmed: true } },
    },
    { direction: 'in', type: 'stop', chat: 'c1' },
  ]);
  transport.close();
});

test('only the newest entries are kept', () => {
  const seen: number[] = [];
  const recorder = new Recorder({ limit: 10, onEntry: () => seen.push(1) });
  for (let index = 0; index < 35; index += 1) {
    recorder.in({ chat: `${index}` }, { type: 'resume' });
  }
  expect(recorder.entries.map(({ chat }) => chat)).toEqual(
    Array.from({ length: 10 }, (_, index) => `${25 + index}`),
  );
  expect(seen).toHaveLength(35);
  recorder.clear();
  expect(recorder.entries).toEqual([]);
});

test('an entry does not change when the chat goes on with the message', () => {
  const recorder = new Recorder();
  const message = { id: 'u', role: 'user', parts: [] as string[] };
  recorder.in({ chat: 'c' }, { type: 'send', messages: [message] });
  message.parts.push('more');
  expect(recorder.entries[0]).toMatchObject({ messages: [{ parts: [] }] });
});

test('what is not known is left out, and what cannot be read is named', () => {
  const known = '{"at":0.1,"direction":"out","chat":"c","request":"1","type":"end","more":1}';
  const unknown = '{"at":0.1,"direction":"out","chat":"c","type":"news"}';
  expect(parseRecording(`${HEADER}\n${known}\n\n${unknown}\r\n`).entries).toEqual([
    JSON.parse(known),
  ]);
  expect(() => parseRecording(`${HEADER}\n${known}\n{"at":`)).toThrow(
    'Line 3 of the recording is not JSON.',
  );
  expect(() => parseRecording(`${HEADER}\n5`)).toThrow('Line 2 of the recording is not an object.');
  expect(() => parseRecording('{"recording":2}')).toThrow('of version 1, not 2');
  expect(() => parseRecording(known)).toThrow('no recording');
  expect(() => parseRecording('')).toThrow('no recording');
});

test('a player takes as long as it took, if it is to', async () => {
  vi.useFakeTimers();
  try {
    const entries: any[] = [
      { at: 1, direction: 'in', chat: 'c', request: '1', type: 'send', messages: [] },
      { at: 3, direction: 'out', chat: 'c', request: '1', type: 'chunk', chunk: start('a1') },
      { at: 4, direction: 'out', chat: 'c', request: '1', type: 'end' },
    ];
    const recording = { ...parseRecording(HEADER), entries };
    const replay = new ReplayTransport(recording, { pace: 'recorded' });
    const reader = (await replay.sendMessages({ abortSignal: undefined })).getReader();
    let come = 0;
    void reader.read().then(() => (come += 1));
    await vi.advanceTimersByTimeAsync(1_999);
    expect(come).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(come).toBe(1);
  } finally {
    vi.useRealTimers();
  }
});

test('masking takes the words and leaves what the protocol is made of', () => {
  const place = { at: 1, chat: 'chat-1', request: '7' };
  const [, confirmation] = gated('call-1');
  const chunk: any = {
    ...confirmation,
    input: {
      originalFunctionCall: {
        id: 'call-1',
        name: 'process_payment',
        args: { name: 'Hanako', id: 'A1', amount: 50 },
      },
      toolConfirmation: { hint: '花子さん、50ドル。', confirmed: false },
    },
  };
  expect(redact({ ...place, direction: 'out', type: 'chunk', chunk })).toEqual({
    ...place,
    direction: 'out',
    type: 'chunk',
    chunk: {
      ...chunk,
      input: {
        originalFunctionCall: {
          id: 'call-1',
          name: 'process_payment',
          args: { name: 'xxxxxx', id: 'x0', amount: 0 },
        },
        toolConfirmation: { hint: 'xxxxx00xxx', confirmed: false },
      },
    },
  });
  const messages = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Pay 50, now!' }] }];
  expect(redact({ ...place, direction: 'in', type: 'send', messages })).toMatchObject({
    messages: [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'xxx 00, xxx!' }] }],
  });
  const data = {
    toolCallId: 'call-1',
    toolName: 'where',
    result: { type: 'home', place: 'Ueno 3' },
  };
  expect(redact({ ...place, direction: 'in', type: 'tool_result', data })).toMatchObject({
    data: { toolCallId: 'call-1', toolName: 'where', result: { type: 'xxxx', place: 'xxxx 0' } },
  });
});

test('what is masked can be played', async () => {
  const recorder = new Recorder({ redacted: true });
  const scripted = new ScriptedTransport(
    asking('a1', ...gated('p1')),
    goingOn('a1', output('p1', { paid: 5 })),
  );
  const chat = createChat('ai7', { transport: recordingTransport(scripted, recorder) });
  await chat.sendMessage({ text: 'secret' });
  await chat.sendMessage();
  const written = recorder.toJsonl();
  expect(written).not.toMatch(/secret|Done/);
  expect(JSON.parse(written.split('\n')[0]!).redacted).toBe(true);
  const again = createChat('ai7', { transport: new ReplayTransport(parseRecording(written)) });
  await again.sendMessage({ text: 'x' });
  await again.sendMessage();
  expect(again.error).toBeUndefined();
  expect(lastText(again)).toBe('xxxx.');
});
