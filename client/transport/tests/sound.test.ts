import { readFileSync } from 'node:fs';

import { describe, expect, test } from 'vitest';

import {
  fromPcm16,
  Hearing,
  levelOf,
  Resampler,
  SampleQueue,
  Speech,
  toPcm16,
} from '../src/worklets/sound.js';

const tone = (hertz: number, rate: number, seconds = 1, loud = 0.5) =>
  Float32Array.from(
    { length: rate * seconds },
    (_, index) => loud * Math.sin((2 * Math.PI * hertz * index) / rate),
  );
const inPieces = (samples: Float32Array, size: number) =>
  Array.from({ length: Math.ceil(samples.length / size) }, (_, index) =>
    samples.slice(index * size, (index + 1) * size),
  );
const joined = (pieces: Float32Array[]) => Float32Array.from(pieces.flatMap(piece => [...piece]));
/** How much of a frequency there is. */
function strength(samples: Float32Array, hertz: number, rate: number) {
  let [real, imaginary] = [0, 0];
  samples.forEach((sample, index) => {
    const angle = (2 * Math.PI * hertz * index) / rate;
    real += sample * Math.cos(angle);
    imaginary += sample * Math.sin(angle);
  });
  return (2 * Math.hypot(real, imaginary)) / samples.length;
}

test('PCM goes there and back', () => {
  expect([...toPcm16(Float32Array.of(0, 1, -1, 0.5, 2, -2))]).toEqual([
    0, 32767, -32768, 16384, 32767, -32768,
  ]);
  const bytes = Uint8Array.of(0x00, 0x80, 0xff, 0x7f, 0x01).buffer;
  expect([...fromPcm16(bytes)]).toEqual([-1, 32767 / 32768]);
  const there = Int16Array.of(-32768, -1, 0, 1, 32767);
  // One less at most: the positive side has one step less than the negative one.
  const back = toPcm16(fromPcm16(there.buffer));
  back.forEach((sample, index) => expect(Math.abs(sample - there[index]!)).toBeLessThanOrEqual(1));
});

describe.each([
  [48_000, 16_000],
  [44_100, 16_000],
  [16_000, 16_000],
  [8_000, 16_000],
  [24_000, 48_000],
  [24_000, 44_100],
])('from %i to %i samples a second', (from, to) => {
  test('a tone stays the same tone, as loud and as long', () => {
    const made = new Resampler(from, to).push(tone(440, from));
    expect(Math.abs(made.length - to)).toBeLessThan(to / 100);
    expect(strength(made, 440, to)).toBeCloseTo(0.5, 1);
    expect(levelOf(made)).toBeCloseTo(0.5 / Math.SQRT2, 1);
  });

  test('pieces give the same as the whole', () => {
    const samples = tone(440, from, 0.2);
    const whole = new Resampler(from, to).push(samples);
    const resampler = new Resampler(from, to);
    const pieces = joined(inPieces(samples, 128).map(piece => resampler.push(piece)));
    expect(pieces.length).toBe(whole.length);
    pieces.forEach((sample, index) => expect(sample).toBeCloseTo(whole[index]!, 3));
  });
});

test('what the slower rate cannot carry is not heard as another tone', () => {
  const made = new Resampler(48_000, 16_000).push(tone(12_000, 48_000));
  // It would come back as 4 kHz.
  expect(strength(made, 4_000, 16_000)).toBeLessThan(0.01);
});

test('a microphone is heard in pieces of a tenth of a second, whatever its rate', () => {
  for (const rate of [44_100, 48_000, 16_000]) {
    const hearing = new Hearing(rate);
    const pieces = inPieces(tone(440, rate), 128).flatMap(piece => hearing.push(piece));
    expect(pieces.length).toBeGreaterThanOrEqual(9);
    for (const { pcm, level } of pieces) {
      expect(pcm.byteLength).toBe(3_200);
      expect(level).toBeGreaterThan(0.3);
      expect(level).toBeLessThan(0.4);
    }
    const [rest] = hearing.end();
    expect(rest!.pcm.byteLength).toBeLessThan(3_200);
    expect(hearing.end()).toEqual([]);
  }
});

test('a queue gives samples in their order, and then silence', () => {
  const queue = new SampleQueue();
  const target = new Float32Array(10_000);
  // More than it holds at first, and around its end.
  for (let round = 0; round < 8; round += 1) {
    queue.push(Float32Array.from({ length: 9_000 }, (_, index) => round * 9_000 + index));
    if (round % 2 === 1) {
      const first = ((round - 1) / 2) * 10_000;
      expect(queue.pull(target)).toBe(10_000);
      expect(target[0]).toBe(first);
      expect(target[9_999]).toBe(first + 9_999);
    }
  }
  expect(queue.length).toBe(32_000);
  queue.clear();
  expect(queue.pull(target)).toBe(0);
  expect(target.every(sample => sample === 0)).toBe(true);
});

describe('speech', () => {
  const RATE = 48_000;
  const pcm = (seconds: number) => toPcm16(tone(440, 24_000, seconds)).buffer as ArrayBuffer;
  const pull = (speech: Speech, seconds: number) => {
    const blocks = Array.from(
      { length: Math.ceil((seconds * RATE) / 128) },
      () => new Float32Array(128),
    );
    blocks.forEach(block => speech.pull(block));
    return joined(blocks);
  };

  test('begins when enough has come, and ends when nothing is left', () => {
    const speech = new Speech(RATE);
    speech.push(pcm(0.05));
    expect(levelOf(pull(speech, 0.01))).toBe(0);
    speech.push(pcm(0.2));
    expect(levelOf(pull(speech, 0.1))).toBeGreaterThan(0.3);
    expect(speech.isPlaying).toBe(true);
    pull(speech, 0.3);
    expect(speech.isPlaying).toBe(false);
  });

  test('that is shorter than what is gathered is heard, too', () => {
    const speech = new Speech(RATE);
    speech.push(pcm(0.05));
    expect(levelOf(pull(speech, 0.3))).toBeGreaterThan(0.05);
  });

  test('that is dropped is not heard', () => {
    const speech = new Speech(RATE);
    speech.push(pcm(1));
    pull(speech, 0.1);
    speech.drop();
    expect(speech.isPlaying).toBe(false);
    expect(levelOf(pull(speech, 0.5))).toBe(0);
  });
});

test('the module imports nothing, and is too large for a bundler to make it a data: address', () => {
  const source = readFileSync(new URL('../src/worklets/sound.js', import.meta.url), 'utf8');
  expect(source).not.toMatch(/^import /m);
  expect(source.length).toBeGreaterThan(4_096);
});
