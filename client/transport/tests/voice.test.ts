import { Voice, type VoiceState } from 'adk-stream-client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { memorySockets } from './memorySocket.js';
import { settled, until } from './waiting.js';

// A browser's sound, without any: what is posted to a worklet, and what a test lets one say.

class Port {
  posted: any[] = [];
  onmessage: (event: { data: any }) => void = () => {};
  onPosted: (data: any) => void = () => {};
  postMessage(data: any) {
    this.posted.push(data);
    this.onPosted(data);
  }
}

let nodes: Record<string, { port: Port }>;
let tracks: { stop: () => void; isStopped: boolean }[];
let modules: string[];
let contexts: { isClosed: boolean }[];

class Context {
  destination = {};
  isClosed = false;
  audioWorklet = { addModule: async (url: URL | string) => void modules.push(String(url)) };
  constructor() {
    contexts.push(this);
  }
  async resume() {}
  async close() {
    this.isClosed = true;
  }
  createMediaStreamSource() {
    return { connect() {}, disconnect() {} };
  }
}

class Node {
  port = new Port();
  constructor(_: Context, name: string) {
    nodes[name] = this;
    // The microphone's worklet says when it has posted all that it heard.
    if (name === 'adk-microphone') {
      this.port.onPosted = () => this.port.onmessage({ data: { type: 'ended' } });
    }
  }
  connect() {}
}

function microphone(given: () => Promise<unknown> = async () => ({ getTracks: () => tracks })) {
  vi.stubGlobal('navigator', { mediaDevices: { getUserMedia: given } });
}

beforeEach(() => {
  [nodes, modules, contexts] = [{}, [], []];
  const track = { isStopped: false, stop: () => void (track.isStopped = true) };
  tracks = [track];
  vi.stubGlobal('AudioContext', Context);
  vi.stubGlobal('AudioWorkletNode', Node);
  microphone();
});
afterEach(() => vi.unstubAllGlobals());

/** A voice, and its server. */
function page() {
  const { Socket, opened } = memorySockets();
  class Binary extends Socket {
    frames: any[] = [];
    override send(frame: any) {
      this.frames.push(frame);
    }
  }
  const states: VoiceState[] = [];
  const errors: string[] = [];
  const interruptions: number[] = [];
  const voice = new Voice({
    chatId: 'c 1',
    url: 'https://example.test/api/chat/c%201/audio',
    webSocket: Binary as any,
    onState: state => states.at(-1) !== state && states.push(state),
    onError: error => errors.push(error.message),
    onInterrupted: () => interruptions.push(1),
  });
  const talk = async () => {
    const before = opened.length;
    const talking = voice.talk();
    await until(() => (opened[before] as any)?.onopen !== undefined);
    opened[before]!.open();
    await talking;
    return opened.at(-1) as any;
  };
  return { voice, opened: opened as any[], states, errors, interruptions, talk };
}

test('what the microphone hears is sent, and that it is off after the last piece', async () => {
  const { voice, states, talk } = page();
  const socket = await talk();
  expect(socket.url).toBe('wss://example.test/api/chat/c%201/audio');
  expect(socket.binaryType).toBe('arraybuffer');
  expect(modules[0]).toMatch(/worklets\/sound\.js$/);
  const pcm = new ArrayBuffer(4);
  nodes['adk-microphone']!.port.onmessage({ data: { type: 'heard', pcm, level: 0.5 } });
  expect(voice.level).toBe(0.5);
  await voice.pause();
  expect(socket.frames).toEqual([pcm, '{"type":"end"}']);
  expect(tracks[0]!.isStopped).toBe(true);
  expect(voice.level).toBe(0);
  expect(states).toEqual(['opening', 'talking', 'listening']);
  expect(socket.closedWith).toBeUndefined();
});

test('talking again uses the same connection', async () => {
  const { voice, opened, talk } = page();
  await talk();
  await voice.pause();
  await voice.talk();
  expect(voice.state).toBe('talking');
  expect(opened).toHaveLength(1);
});

test('a key that is released before the microphone is on leaves it off', async () => {
  const { voice, opened } = page();
  const talking = voice.talk();
  await voice.pause();
  await until(() => opened[0]?.onopen !== undefined);
  opened[0].open();
  await talking;
  expect(voice.state).toBe('listening');
  expect(tracks[0]!.isStopped).toBe(true);
  await voice.talk();
  expect(voice.state).toBe('talking');
});

test('what the model says is played, and dropped when the user speaks', async () => {
  const { voice, interruptions, talk } = page();
  const socket = await talk();
  const speaker = nodes['adk-speaker']!.port;
  const pcm = new ArrayBuffer(4);
  socket.onmessage({ data: pcm });
  speaker.onmessage({ data: { isPlaying: true } });
  expect(voice.isPlaying).toBe(true);
  socket.says({ type: 'interrupted' });
  expect(speaker.posted).toEqual([pcm, 'drop']);
  expect(interruptions).toHaveLength(1);
});

test('a refused piece of sound is told, and what cannot be read is left alone', async () => {
  const { voice, errors, talk } = page();
  const socket = await talk();
  socket.says({ type: 'error', errorText: 'Too large.' }, 'nonsense', 'null');
  expect(errors).toEqual(['Too large.']);
  expect(voice.state).toBe('talking');
});

test('a microphone that is not allowed leaves the connection to hear', async () => {
  microphone(() => Promise.reject(new Error('Permission denied')));
  const { voice, errors, talk } = page();
  await expect(talk()).rejects.toThrow('Permission denied');
  expect(voice.state).toBe('listening');
  expect(errors).toEqual(['Permission denied']);
});

test('a server that cannot be reached gives the microphone back, and the next talk tries again', async () => {
  const { voice, opened, talk } = page();
  const talking = expect(voice.talk()).rejects.toThrow(/network.*could not be opened/);
  await until(() => opened[0]?.onclose !== undefined);
  opened[0].lose(1006);
  await talking;
  await settled();
  expect(voice.state).toBe('closed');
  expect(tracks[0]!.isStopped).toBe(true);
  expect(contexts[0]!.isClosed).toBe(true);
  await talk();
  expect(voice.state).toBe('talking');
  expect(opened).toHaveLength(2);
});

test('a connection that is lost ends it all, and is told', async () => {
  const { voice, errors, talk } = page();
  const socket = await talk();
  socket.lose(1006);
  await until(() => contexts[0]!.isClosed);
  expect(voice.state).toBe('closed');
  expect(tracks[0]!.isStopped).toBe(true);
  expect(errors).toEqual(['The network connection for sound was lost (1006).']);
});

test('closing gives back the microphone and the speaker', async () => {
  const { voice, talk } = page();
  const socket = await talk();
  await voice.close();
  expect(socket.closedWith).toBe(1000);
  expect(contexts[0]!.isClosed).toBe(true);
  expect(tracks[0]!.isStopped).toBe(true);
  expect(voice.state).toBe('closed');
});

test('closing while it opens leaves nothing on', async () => {
  const { voice, opened } = page();
  const talking = expect(voice.talk()).rejects.toThrow('closed');
  await until(() => opened[0]?.onopen !== undefined);
  const closing = voice.close();
  opened[0].open();
  await talking;
  await closing;
  expect(voice.state).toBe('closed');
  expect(tracks[0]!.isStopped).toBe(true);
  expect(opened[0].closedWith).toBe(1000);
});
