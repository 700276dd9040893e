// @ts-check
// The microphone and the speaker of a live chat, as an AudioWorklet module. It imports nothing, so that
// bundlers which only copy a file that is named by its address serve it as it is.

/** Samples a second that a live model hears, and that it speaks with. */
export const HEARD_RATE = 16_000;
export const SPOKEN_RATE = 24_000;

/** The half width of the filter's kernel, in samples of the slower side. */
const LOBES = 8;
/** How finely the kernel is tabled between two samples. */
const PHASES = 128;

/**
 * A windowed sinc: what is above half of the slower rate is taken away, or it would be heard as noise.
 *
 * @param {number} cutoff as a part of the source's rate, at most 1
 */
function kernel(cutoff) {
  const half = Math.ceil(LOBES / cutoff);
  const table = new Float32Array(half * PHASES + 2);
  for (let index = 0; index <= half * PHASES; index += 1) {
    const at = index / PHASES;
    const angle = Math.PI * at * cutoff;
    const sinc = at === 0 ? 1 : Math.sin(angle) / angle;
    const window = 0.5 + 0.5 * Math.cos((Math.PI * at) / half);
    table[index] = sinc * window * cutoff;
  }
  return { half, table };
}

/** Changes the rate of a stream of samples; what comes in pieces gives the same as a whole. */
export class Resampler {
  #step;
  #half;
  #table;
  /** The samples that are still needed. */
  #kept;
  /** Where in them the next sample is, between two of the source. */
  #position;

  /**
   * @param {number} from samples a second that come in
   * @param {number} to samples a second that go out
   */
  constructor(from, to) {
    this.#step = from / to;
    // A little below the half, as the filter is not infinitely steep.
    const { half, table } = kernel(Math.min(1, (to / from) * 0.92));
    this.#half = half;
    this.#table = table;
    // Silence before the first sample.
    this.#kept = new Float32Array(half);
    this.#position = half;
  }

  /**
   * @param {Float32Array} samples
   * @returns {Float32Array} what can be said of the source so far
   */
  push(samples) {
    const source = new Float32Array(this.#kept.length + samples.length);
    source.set(this.#kept);
    source.set(samples, this.#kept.length);
    const made = [];
    while (this.#position + this.#half < source.length) {
      made.push(this.#at(source, this.#position));
      this.#position += this.#step;
    }
    const done = Math.max(0, Math.floor(this.#position) - this.#half);
    this.#kept = source.slice(done);
    this.#position -= done;
    return Float32Array.from(made);
  }

  /**
   * @param {Float32Array} source
   * @param {number} position
   */
  #at(source, position) {
    const first = Math.max(0, Math.ceil(position - this.#half));
    const last = Math.min(source.length - 1, Math.floor(position + this.#half));
    let sum = 0;
    for (let index = first; index <= last; index += 1) {
      const phase = Math.round(Math.abs(position - index) * PHASES);
      sum += /** @type {number} */ (source[index]) * (this.#table[phase] ?? 0);
    }
    return sum;
  }
}

/**
 * @param {Float32Array} samples
 * @returns {Int16Array} clipped, not wrapped around
 */
export function toPcm16(samples) {
  return Int16Array.from(samples, sample => {
    const clipped = Math.max(-1, Math.min(1, sample));
    return Math.round(clipped < 0 ? clipped * 0x8000 : clipped * 0x7fff);
  });
}

/**
 * @param {ArrayBuffer} pcm 16 bits, little-endian; half a sample at the end is left out
 * @returns {Float32Array}
 */
export function fromPcm16(pcm) {
  const view = new DataView(pcm);
  const samples = new Float32Array(Math.floor(pcm.byteLength / 2));
  for (let index = 0; index < samples.length; index += 1) {
    samples[index] = view.getInt16(index * 2, true) / 0x8000;
  }
  return samples;
}

/**
 * @param {Float32Array} samples
 * @returns {number} how loud they are, 0 to 1
 */
export function levelOf(samples) {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return samples.length === 0 ? 0 : Math.min(1, Math.sqrt(sum / samples.length));
}

/** Samples in the order they came; it grows, as a model speaks faster than one can hear. */
export class SampleQueue {
  #ring = new Float32Array(SPOKEN_RATE);
  #first = 0;
  #length = 0;

  get length() {
    return this.#length;
  }

  /** @param {Float32Array} samples */
  push(samples) {
    if (this.#length + samples.length > this.#ring.length) this.#grow(samples.length);
    for (const sample of samples) {
      this.#ring[(this.#first + this.#length) % this.#ring.length] = sample;
      this.#length += 1;
    }
  }

  /**
   * Fills what it is given, with silence where there is nothing left.
   *
   * @param {Float32Array} target
   * @returns {number} how many samples there were
   */
  pull(target) {
    const count = Math.min(target.length, this.#length);
    for (let index = 0; index < count; index += 1) {
      target[index] = /** @type {number} */ (this.#ring[(this.#first + index) % this.#ring.length]);
    }
    target.fill(0, count);
    this.#first = (this.#first + count) % this.#ring.length;
    this.#length -= count;
    return count;
  }

  clear() {
    this.#first = this.#length = 0;
  }

  /** @param {number} more */
  #grow(more) {
    const count = this.#length;
    const ring = new Float32Array(Math.max(this.#ring.length * 2, count + more));
    this.pull(ring.subarray(0, count));
    this.#ring = ring;
    this.#first = 0;
    this.#length = count;
  }
}

/** What the microphone hears, as pieces that can be sent. */
export class Hearing {
  #resampler;
  #piece;
  #filled = 0;

  /**
   * @param {number} rate of the device
   * @param {number} size samples in a piece; 100 ms unless given
   */
  constructor(rate, size = HEARD_RATE / 10) {
    this.#resampler = new Resampler(rate, HEARD_RATE);
    this.#piece = new Float32Array(size);
  }

  /**
   * @param {Float32Array} samples
   * @returns {{ pcm: ArrayBuffer, level: number }[]} the pieces that are complete
   */
  push(samples) {
    const pieces = [];
    for (const sample of this.#resampler.push(samples)) {
      this.#piece[this.#filled] = sample;
      this.#filled += 1;
      if (this.#filled === this.#piece.length) pieces.push(this.#take());
    }
    return pieces;
  }

  /** @returns {{ pcm: ArrayBuffer, level: number }[]} what is left when the microphone is turned off */
  end() {
    return this.#filled === 0 ? [] : [this.#take()];
  }

  #take() {
    const samples = this.#piece.subarray(0, this.#filled);
    this.#filled = 0;
    const pcm = /** @type {ArrayBuffer} */ (toPcm16(samples).buffer);
    return { pcm, level: levelOf(samples) };
  }
}

/** What is to be played: it waits for a little before it begins, so that late pieces leave no gaps. */
export class Speech {
  #resampler;
  #queue = new SampleQueue();
  #rate;
  #ahead;
  /** Whether it plays; else it gathers, or there is nothing. */
  #isPlaying = false;
  /** For how many samples it has waited for more. */
  #waited = 0;

  /**
   * @param {number} rate of the device
   * @param {number} ahead seconds that are gathered first
   */
  constructor(rate, ahead = 0.12) {
    this.#rate = rate;
    this.#ahead = ahead * rate;
    this.#resampler = new Resampler(SPOKEN_RATE, rate);
  }

  get isPlaying() {
    return this.#isPlaying;
  }

  /** @param {ArrayBuffer} pcm */
  push(pcm) {
    this.#queue.push(this.#resampler.push(fromPcm16(pcm)));
  }

  /** Drops what is not played yet. */
  drop() {
    this.#queue.clear();
    this.#resampler = new Resampler(SPOKEN_RATE, this.#rate);
    this.#isPlaying = false;
    this.#waited = 0;
  }

  /** @param {Float32Array} target */
  pull(target) {
    const isEnough = this.#queue.length >= this.#ahead || this.#waited >= this.#ahead;
    if (!this.#isPlaying && (this.#queue.length === 0 || !isEnough)) {
      // A word that is shorter than what is gathered is played, too.
      if (this.#queue.length > 0) this.#waited += target.length;
      target.fill(0);
      return;
    }
    this.#waited = 0;
    this.#queue.pull(target);
    this.#isPlaying = this.#queue.length > 0;
  }
}

// Only an AudioWorklet has these; tests import what is above.
const worklet = /** @type {any} */ (globalThis);
if (worklet.registerProcessor !== undefined) {
  const { AudioWorkletProcessor: Processor, registerProcessor, sampleRate } = worklet;

  /** Mixes all channels into one. @param {Float32Array[]} channels */
  const mixed = ([first = new Float32Array(0), ...others]) =>
    others.length === 0
      ? first
      : first.map((sample, index) => {
          const sum = others.reduce((total, each) => total + (each[index] ?? 0), sample);
          return sum / (others.length + 1);
        });

  registerProcessor(
    'adk-microphone',
    class extends Processor {
      hearing = new Hearing(sampleRate);
      isOn = true;

      constructor() {
        super();
        this.port.onmessage = () => {
          this.post(this.hearing.end());
          this.port.postMessage({ type: 'ended' });
          this.isOn = false;
        };
      }

      /** @param {{ pcm: ArrayBuffer, level: number }[]} pieces */
      post(pieces) {
        for (const piece of pieces) {
          this.port.postMessage({ type: 'heard', ...piece }, [piece.pcm]);
        }
      }

      /** @param {Float32Array[][]} inputs */
      process([channels = []]) {
        if (channels.length > 0 && this.isOn) this.post(this.hearing.push(mixed(channels)));
        return this.isOn;
      }
    },
  );

  registerProcessor(
    'adk-speaker',
    class extends Processor {
      speech = new Speech(sampleRate);
      wasPlaying = false;

      constructor() {
        super();
        /** @param {{ data: ArrayBuffer | 'drop' }} event */
        this.port.onmessage = ({ data }) => {
          if (data === 'drop') this.speech.drop();
          else this.speech.push(data);
        };
      }

      /**
       * @param {unknown} _inputs
       * @param {Float32Array[][]} outputs
       */
      process(_inputs, outputs) {
        const [target, ...others] = outputs[0] ?? [];
        if (target === undefined) return true;
        this.speech.pull(target);
        for (const other of others) other.set(target);
        const { isPlaying } = this.speech;
        if (isPlaying !== this.wasPlaying) this.port.postMessage({ isPlaying });
        this.wasPlaying = isPlaying;
        return true;
      }
    },
  );
}
