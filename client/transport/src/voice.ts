import type { SocketClass, SocketLike } from './connection.js';
import { openSocket, type Params } from './socketAddress.js';

export type VoiceState = 'closed' | 'opening' | 'listening' | 'talking';

export interface VoiceOptions {
  chatId: string;
  /** The address of the audio socket; `/api/chat/{chatId}/audio` of the page's server unless given. */
  url?: string;
  params?: Params;
  protocols?: string | string[];
  webSocket?: SocketClass;
  /** Called when `state`, `isPlaying` or `level` changed. */
  onState?: (state: VoiceState) => void;
  /** Called with what went wrong: no permission for the microphone, a lost connection, a refused frame. */
  onError?: (error: Error) => void;
  /** Called when the user spoke while the model did, and what was not played yet is dropped. */
  onInterrupted?: () => void;
  /** Where the AudioWorklet module is, if the bundler does not find it. */
  worklet?: string | URL;
}

const OPEN = 1;
const NORMAL = 1000;
/** How long the last piece of sound may take from the worklet to the page. */
const ENDING_MS = 500;

/**
 * The microphone and the speaker of a live chat, beside its socket.
 *
 * `talk` opens the connection, so call it from a click: browsers play no sound before one. Between
 * `pause` and the next `talk` the answer is still heard. A connection that is lost is opened by the next `talk`.
 */
export class Voice {
  readonly #options: VoiceOptions;
  #state: VoiceState = 'closed';
  #isPlaying = false;
  #level = 0;
  // What is needed to hear; undefined while closed.
  #line: Promise<Line> | undefined;
  // What is needed to talk; undefined while the microphone is off.
  #microphone: Microphone | undefined;
  // Whether it is to be on, once it can be.
  #isWanted = false;
  // Resolves when it is on; undefined unless it is being turned on.
  #opening: Promise<void> | undefined;
  // Resolves when the one before has said that it is off.
  #ending: Promise<void> = Promise.resolve();

  constructor(options: VoiceOptions) {
    this.#options = options;
  }

  get state(): VoiceState {
    return this.#state;
  }

  /** Whether the model is heard. */
  get isPlaying(): boolean {
    return this.#isPlaying;
  }

  /** How loud the microphone is, 0 to 1. */
  get level(): number {
    return this.#level;
  }

  /** Turns the microphone on; rejects if the user does not allow it, or there is no connection. */
  talk(): Promise<void> {
    this.#isWanted = true;
    this.#opening ??= this.#begin().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  /**
   * Turns the microphone off: what was said is complete. The answer is heard. One that is still being
   * opened, as by a key that is pressed shortly, is not turned on.
   */
  async pause(): Promise<void> {
    this.#isWanted = false;
    const microphone = this.#microphone;
    if (microphone === undefined) return;
    this.#microphone = undefined;
    this.#level = 0;
    this.#become('listening');
    this.#ending = microphone.end();
    await this.#ending;
  }

  /** Turns both off. */
  async close(): Promise<void> {
    this.#isWanted = false;
    const line = this.#line;
    this.#line = undefined;
    const microphone = this.#microphone;
    this.#microphone = undefined;
    this.#isPlaying = false;
    this.#level = 0;
    this.#become('closed');
    await microphone?.end();
    await line
      ?.then(({ socket, context }) => {
        socket.close(NORMAL);
        return context.close();
      })
      .catch(() => {});
  }

  async #begin(): Promise<void> {
    if (this.#state === 'talking') return;
    this.#become('opening');
    try {
      // Both ask the user or the network; neither needs the other.
      const opening = this.#connected();
      const [line, stream] = await settledBoth(opening, askForMicrophone());
      await this.#ending;
      if (this.#line !== opening) {
        stopTracks(stream);
        throw new Error('The connection for sound was closed.');
      }
      if (this.#isWanted) this.#microphone = this.#listenTo(stream, line);
      else stopTracks(stream);
      this.#become(this.#isWanted ? 'talking' : 'listening');
    } catch (error) {
      const isOpen = this.#line !== undefined && (await isFulfilled(this.#line));
      if (!isOpen) this.#line = undefined;
      this.#become(isOpen ? 'listening' : 'closed');
      this.#fail(error);
      throw error;
    }
  }

  #connected(): Promise<Line> {
    this.#line ??= this.#open();
    return this.#line;
  }

  async #open(): Promise<Line> {
    const { chatId, url = `/api/chat/${encodeURIComponent(chatId)}/audio` } = this.#options;
    const context = new AudioContext();
    // At once, while the browser knows of the click.
    const running = context.resume();
    try {
      // Bundlers know this form, and serve the file as it is.
      const built = new URL('./worklets/sound.js', import.meta.url);
      await context.audioWorklet.addModule(this.#options.worklet ?? built);
      await running;
      const speaker = new AudioWorkletNode(context, 'adk-speaker', { numberOfInputs: 0 });
      speaker.connect(context.destination);
      speaker.port.onmessage = ({ data }) => {
        this.#isPlaying = data.isPlaying;
        this.#become(this.#state);
      };
      const socket = await openSocket({ ...this.#options, url });
      await this.#serve(socket as BinarySocket, speaker);
      return { socket: socket as BinarySocket, context };
    } catch (error) {
      await context.close();
      throw error;
    }
  }

  /** Resolves when the socket is open. */
  #serve(socket: BinarySocket, speaker: AudioWorkletNode): Promise<void> {
    socket.binaryType = 'arraybuffer';
    return new Promise((resolve, reject) => {
      let wasOpen = false;
      socket.onopen = () => {
        wasOpen = true;
        resolve();
      };
      socket.onmessage = ({ data }: { data: unknown }) => this.#take(data, speaker);
      // What follows is a close, which knows more.
      socket.onerror = () => {};
      socket.onclose = ({ code }: { code: number }) => {
        const what = wasOpen ? 'was lost' : 'could not be opened';
        const error = new TypeError(`The network connection for sound ${what} (${code}).`);
        reject(error);
        if (!wasOpen || this.#state === 'closed') return;
        void this.close();
        this.#fail(error);
      };
    });
  }

  #take(data: unknown, speaker: AudioWorkletNode): void {
    if (data instanceof ArrayBuffer) {
      speaker.port.postMessage(data, [data]);
      return;
    }
    const { type, errorText } = readText(data);
    if (type === 'interrupted') {
      speaker.port.postMessage('drop');
      this.#options.onInterrupted?.();
    } else if (type === 'error') {
      this.#fail(new Error(errorText ?? 'The server refused a piece of sound.'));
    }
  }

  #listenTo(stream: MediaStream, { socket, context }: Line): Microphone {
    const source = context.createMediaStreamSource(stream);
    const node = new AudioWorkletNode(context, 'adk-microphone', { numberOfOutputs: 0 });
    source.connect(node);
    const send = (frame: ArrayBuffer | string) => {
      if (socket.readyState === OPEN) socket.send(frame);
    };
    const ended = new Promise<void>(resolve => {
      node.port.onmessage = ({ data }) => {
        if (data.type === 'ended') return resolve();
        send(data.pcm);
        this.#level = data.level;
        this.#become(this.#state);
      };
    });
    return {
      end: async () => {
        node.port.postMessage('end');
        stopTracks(stream);
        // A context that the system took the sound from says nothing.
        await Promise.race([ended, new Promise(resolve => setTimeout(resolve, ENDING_MS))]);
        source.disconnect();
        send(JSON.stringify({ type: 'end' }));
      },
    };
  }

  #become(state: VoiceState): void {
    this.#state = state;
    this.#options.onState?.(state);
  }

  #fail(error: unknown): void {
    this.#options.onError?.(error instanceof Error ? error : new Error(String(error)));
  }
}

/** A socket that takes sound, too. */
interface BinarySocket extends SocketLike {
  binaryType: string;
  send(frame: string | ArrayBuffer): void;
}

interface Line {
  socket: BinarySocket;
  context: AudioContext;
}

interface Microphone {
  /** Sends what is left and that it is all, and gives the device back. */
  end(): Promise<void>;
}

async function askForMicrophone(): Promise<MediaStream> {
  const { mediaDevices } = globalThis.navigator;
  // There is none on a page that came over plain HTTP from another host.
  if (mediaDevices === undefined) throw new Error('This page may not use a microphone.');
  const audio = { channelCount: 1, echoCancellation: true, noiseSuppression: true };
  return mediaDevices.getUserMedia({ audio });
}

/** Both results; if one fails, a microphone that was given is given back. */
async function settledBoth(
  line: Promise<Line>,
  microphone: Promise<MediaStream>,
): Promise<[Line, MediaStream]> {
  try {
    return await Promise.all([line, microphone]);
  } catch (error) {
    microphone.then(stopTracks, () => {});
    throw error;
  }
}

function stopTracks(stream: MediaStream): void {
  stream.getTracks().forEach(track => track.stop());
}

async function isFulfilled(promise: Promise<unknown>): Promise<boolean> {
  return promise.then(
    () => true,
    () => false,
  );
}

function readText(data: unknown): { type?: string; errorText?: string } {
  try {
    return JSON.parse(String(data)) ?? {};
  } catch {
    return {};
  }
}
