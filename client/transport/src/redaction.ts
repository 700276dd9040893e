import type { RecordingEntry } from './recording.js';
import { isRecord } from './toolParts.js';

// What these hold are ids and words of the protocol.
const NAMES = new Set(
  `type id role state chat request trigger messageId toolCallId toolName approvalId decisionId sourceId
  mediaType finishReason kind inputEncoding`.split(/\s+/),
);
// Those of the card of an approval.
const CARD = new Set('createdAt decidedAt expiresAt risk status toolCallId toolName'.split(' '));
// What these hold is the user's and the tools' own: an id or a name there may be a person's.
const CONTENT = new Set(['input', 'rawInput', 'output', 'result', 'metadata', 'messageMetadata']);
const NOTHING: ReadonlySet<string> = new Set();

/**
 * Masks the text of an entry: letters become `x`, digits `0`, numbers 0. What it is made of stays: ids,
 * types, keys, the names of tools, yes and no.
 */
export function redact(entry: RecordingEntry): RecordingEntry {
  const { at, direction, ...rest } = entry;
  return { at, direction, ...(masked(rest, NAMES) as object) } as RecordingEntry;
}

function masked(value: unknown, kept: ReadonlySet<string>): unknown {
  if (typeof value === 'string') return maskText(value);
  if (typeof value === 'number') return 0;
  if (Array.isArray(value)) return value.map(each => masked(each, kept));
  if (!isRecord(value)) return value;
  const keptIn = (key: string) => (CONTENT.has(key) ? NOTHING : keptInData(value, key, kept));
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (typeof inner === 'string' && kept.has(key)) return [key, inner];
      if (key === 'originalFunctionCall' && isRecord(inner)) return [key, maskedCall(inner)];
      return [key, masked(inner, keptIn(key))];
    }),
  );
}

/** What is kept of a field: the data of a data part is content; that of a `tool_result` is protocol. */
function keptInData(
  { type }: Record<string, unknown>,
  key: string,
  kept: ReadonlySet<string>,
): ReadonlySet<string> {
  if (key !== 'data' || !String(type).startsWith('data-')) return kept;
  return type === 'data-approval' ? CARD : NOTHING;
}

/** A call inside the input of its confirmation: its id and name are the protocol's. */
function maskedCall({ id, name, ...rest }: Record<string, unknown>): object {
  return { id, name, ...(masked(rest, NOTHING) as object) };
}

function maskText(text: string): string {
  return text.replace(/\p{N}/gu, '0').replace(/[A-Za-z]|[^\p{ASCII}\s]/gu, 'x');
}
