import {
  formatRecording,
  RECORDING_VERSION,
  type InEntry,
  type OutEntry,
  type Recording,
  type RecordingEntry,
  type RecordingHeader,
} from './recording.js';
import { redact } from './redaction.js';

export interface RecorderOptions {
  /** How many entries are kept, the newest; 20,000 unless given. */
  limit?: number;
  /** Called with each entry. */
  onEntry?: (entry: RecordingEntry) => void;
  /** Whether text is masked before it is kept. */
  redacted?: boolean;
  /** Milliseconds, for tests. */
  now?: () => number;
}

/** Where an entry belongs. */
export interface EntryPlace {
  chat: string;
  request?: string | undefined;
}

/** Keeps what goes to the server and what comes from it. */
export class Recorder {
  /** Called with each entry. */
  onEntry: ((entry: RecordingEntry) => void) | undefined;
  readonly #limit: number;
  readonly #now: () => number;
  readonly #began: number;
  readonly #isRedacted: boolean;
  #entries: RecordingEntry[] = [];
  #requests = 0;

  constructor({ limit = 20_000, onEntry, redacted = false, now = Date.now }: RecorderOptions = {}) {
    this.#limit = limit;
    this.onEntry = onEntry;
    this.#isRedacted = redacted;
    this.#now = now;
    this.#began = now();
  }

  /** The entries, oldest first. */
  get entries(): readonly RecordingEntry[] {
    return this.#entries.slice(-this.#limit);
  }

  get recording(): Recording {
    const header: RecordingHeader = {
      recording: RECORDING_VERSION,
      by: 'adk-stream-client',
      startedAt: new Date(this.#began).toISOString(),
      ...(this.#isRedacted && { redacted: true }),
    };
    return { header, entries: [...this.entries] };
  }

  /** A name for the next request. */
  nextRequest(): string {
    this.#requests += 1;
    return `${this.#requests}`;
  }

  /** Keeps what goes to the server. */
  in(place: EntryPlace, entry: InEntry): void {
    this.#add(place, { direction: 'in', ...entry });
  }

  /** Keeps what comes from the server. */
  out(place: EntryPlace, entry: OutEntry): void {
    this.#add(place, { direction: 'out', ...entry });
  }

  clear(): void {
    this.#entries = [];
  }

  /** The recording as text, a line for each entry. */
  toJsonl(): string {
    return formatRecording(this.recording);
  }

  #add({ chat, request }: EntryPlace, what: object): void {
    const at = Math.round(this.#now() - this.#began) / 1000;
    const named = request === undefined ? {} : { request };
    // A copy: the chat goes on with the messages.
    const entry = structuredClone({ at, chat, ...named, ...what }) as RecordingEntry;
    const kept = this.#isRedacted ? redact(entry) : entry;
    this.#entries.push(kept);
    // Not at each entry: it moves them all.
    if (this.#entries.length >= 2 * this.#limit) this.#entries = this.#entries.slice(-this.#limit);
    this.onEntry?.(kept);
  }
}
