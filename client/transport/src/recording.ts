// The recording of what went over a wire: JSON lines that the client and the server write alike.

import type { UIMessageChunk } from 'ai';

import { isRecord } from './toolParts.js';

export const RECORDING_VERSION = 1;

/** The first line. */
export interface RecordingHeader {
  recording: typeof RECORDING_VERSION;
  by: string;
  /** When it began, in ISO 8601. */
  startedAt: string;
  /** Whether its text is masked. */
  redacted?: boolean;
}

/** What an entry is about. */
interface Common {
  /** Seconds since the recording began. */
  at: number;
  chat: string;
  /** Ties a request and what answers it; absent for hints. */
  request?: string;
}

/** What goes to the server. */
export type InEntry =
  | { type: 'send'; trigger?: string; messageId?: string; messages: object[] }
  | { type: 'resume' | 'stop' | 'abort' }
  | { type: 'tool_result' | 'decision'; data: unknown };

/** What comes from the server. */
export type OutEntry =
  | { type: 'start' | 'end' | 'no-active' | 'active' }
  | { type: 'chunk'; chunk: UIMessageChunk }
  | { type: 'error'; errorText: string };

export type RecordingEntry = Common &
  ((InEntry & { direction: 'in' }) | (OutEntry & { direction: 'out' }));

export interface Recording {
  header: RecordingHeader;
  entries: RecordingEntry[];
}

/**
 * Reads a recording; entries of kinds that are not known are left out.
 *
 * Throws an error that names the line if one cannot be read, or the version if it is another.
 */
export function parseRecording(text: string): Recording {
  const lines = text
    .split('\n')
    .map((line, index) => ({ line: line.trim(), number: index + 1 }))
    .filter(({ line }) => line !== '')
    .map(({ line, number }) => parseLine(line, number));
  const header = lines.shift();
  if (header === undefined || !('recording' in header)) {
    throw new Error('This is no recording: its first line must hold "recording".');
  }
  if (header.recording !== RECORDING_VERSION) {
    const found = JSON.stringify(header.recording);
    throw new Error(`This reads recordings of version ${RECORDING_VERSION}, not ${found}.`);
  }
  return {
    header: header as unknown as RecordingHeader,
    entries: (lines as object[]).filter(isEntry),
  };
}

export function formatRecording({ header, entries }: Recording): string {
  return [header, ...entries].map(line => `${JSON.stringify(line)}\n`).join('');
}

function parseLine(line: string, number: number): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new Error(`Line ${number} of the recording is not JSON.`);
  }
  if (!isRecord(value)) throw new Error(`Line ${number} of the recording is not an object.`);
  return value;
}

const TYPES: Record<string, ReadonlySet<string>> = {
  in: new Set(['send', 'resume', 'stop', 'abort', 'tool_result', 'decision']),
  out: new Set(['start', 'chunk', 'end', 'error', 'no-active', 'active']),
};

function isEntry(value: object): value is RecordingEntry {
  const { at, direction, type } = value as Record<string, unknown>;
  return typeof at === 'number' && TYPES[String(direction)]?.has(String(type)) === true;
}
