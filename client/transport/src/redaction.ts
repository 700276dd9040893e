import type { RecordingEntry } from './recording.js';
import { isRecord } from './toolParts.js';

// What these hold are ids and words of the protocol, on every level of it.
const KEPT = new Set(
  `type id role state chat request direction trigger messageId toolCallId toolName tool approvalId sourceId
  mediaType finishReason status inputEncoding`.split(/\s+/),
);
// What these hold is the user's and the tools' own: a name there may be a person's.
const CONTENT = new Set(['input', 'rawInput', 'output', 'result', 'metadata', 'messageMetadata']);
// Words of the protocol within content.
const KEPT_IN_CONTENT = new Set(['toolCallId', 'toolName', 'approvalId', 'status', 'outcome']);
const CALL = 'originalFunctionCall';

/** Masks the text of an entry: letters become `x`, digits `0`. What it is made of stays. */
export function redact(entry: RecordingEntry): RecordingEntry {
  const { at, direction, ...rest } = entry;
  return { at, direction, ...(masked(rest, KEPT) as object) } as RecordingEntry;
}

function masked(value: unknown, kept: ReadonlySet<string>): unknown {
  if (typeof value === 'string') return maskText(value);
  if (typeof value === 'number') return 0;
  if (Array.isArray(value)) return value.map(each => masked(each, kept));
  if (!isRecord(value)) return value;
  // The data of a data part is content; that of a `tool_result` is protocol.
  const isDataPart = String(value.type).startsWith('data-');
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (typeof inner === 'string' && kept.has(key)) return [key, inner];
      if (key === CALL && isRecord(inner)) return [key, maskedCall(inner)];
      const isContent = CONTENT.has(key) || (isDataPart && key === 'data');
      return [key, masked(inner, isContent ? KEPT_IN_CONTENT : kept)];
    }),
  );
}

/** A call inside the input of its confirmation: its id and name are the protocol's. */
function maskedCall({ id, name, ...rest }: Record<string, unknown>): object {
  return { id, name, ...(masked(rest, KEPT_IN_CONTENT) as object) };
}

function maskText(text: string): string {
  return text.replace(/[\p{L}\p{M}]/gu, 'x').replace(/\p{N}/gu, '0');
}
