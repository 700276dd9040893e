import { afterEach, expect, test, vi } from 'vitest';

// The scope of an AudioWorklet, as far as the module uses it.
async function loaded(rate: number): Promise<Record<string, new () => any>> {
  const processors: Record<string, new () => any> = {};
  vi.stubGlobal('sampleRate', rate);
  vi.stubGlobal(
    'AudioWorkletProcessor',
    class {
      port = { posted: [] as any[], postMessage: (data: any) => this.port.posted.push(data) };
    },
  );
  vi.stubGlobal('registerProcessor', (name: string, processor: new () => any) => {
    processors[name] = processor;
  });
  vi.resetModules();
  await import('../src/worklets/sound.js');
  return processors;
}

afterEach(() => vi.unstubAllGlobals());

const BLOCK = 128;

test('the microphone posts what it hears, the rest when it is turned off, and then it is done', async () => {
  const processors = await loaded(48_000);
  const microphone = new processors['adk-microphone']!();
  const loud = new Float32Array(BLOCK).fill(0.5);
  for (let blocks = 0; blocks < 48_000 / BLOCK; blocks += 1) {
    // Two channels that cancel each other out in part.
    expect(microphone.process([[loud, new Float32Array(BLOCK)]])).toBe(true);
  }
  expect(microphone.process([[]])).toBe(true);
  const { posted } = microphone.port;
  expect(posted).toHaveLength(9);
  expect(posted[4].pcm.byteLength).toBe(3_200);
  expect(posted[4].level).toBeCloseTo(0.25, 2);
  microphone.port.onmessage({ data: 'end' });
  expect(posted.map(({ type }: any) => type).slice(-2)).toEqual(['heard', 'ended']);
  expect(microphone.process([[loud]])).toBe(false);
});

test('the speaker plays on all channels, says when it does, and can be told to drop', async () => {
  const processors = await loaded(24_000);
  const speaker = new processors['adk-speaker']!();
  const play = () => {
    const channels = [new Float32Array(BLOCK), new Float32Array(BLOCK)];
    expect(speaker.process([], [channels])).toBe(true);
    expect(channels[1]).toEqual(channels[0]);
    return channels[0]!;
  };
  expect(play()[0]).toBe(0);
  speaker.port.onmessage({ data: new Int16Array(24_000).fill(16_384).buffer });
  play();
  expect(play()[100]).toBeCloseTo(0.5, 2);
  speaker.port.onmessage({ data: 'drop' });
  expect(play()[0]).toBe(0);
  expect(speaker.port.posted).toEqual([{ isPlaying: true }, { isPlaying: false }]);
});
