// Envelope 1.0 of `WS /live`, which docs/reference/envelope.md describes.

import type { UIMessageChunk } from 'ai';

import { isRecord } from './toolParts.js';

export type EnvelopeType = 'message' | 'tool_result' | 'interrupt' | 'ping';

/** Why the server does not do something that it was asked for. */
export interface Refusal {
  message: string;
  /** The call that was answered; undefined if something else was asked. */
  toolCallId: string | undefined;
}

/** What the server says: a chunk, the end of a turn, a refusal, the answer to a ping. */
export type Told =
  | { type: 'chunk'; chunk: UIMessageChunk }
  | { type: 'refused'; refusal: Refusal }
  | { type: 'done' | 'pong' | 'other' };

export function writeEnvelope(type: EnvelopeType, data: object = {}): string {
  return JSON.stringify({ type, version: '1.0', data });
}

/** Returns what a frame says, or undefined if it cannot be read. */
export function readTold(frame: unknown): Told | undefined {
  if (typeof frame !== 'string') return undefined;
  const text = frame.trim();
  // A comment, as event streams have them to keep a connection alive.
  if (text.startsWith(':')) return { type: 'other' };
  const isEvent = text.startsWith('data:');
  const body = isEvent ? text.slice('data:'.length).trim() : text;
  if (isEvent && body === '[DONE]') return { type: 'done' };
  const value = parsed(body);
  if (!isRecord(value) || typeof value.type !== 'string') return undefined;
  // No more is checked: the chat ignores a type that it does not know, and fails one that does not fit.
  if (isEvent) return { type: 'chunk', chunk: value as unknown as UIMessageChunk };
  if (value.type === 'refused') return { type: 'refused', refusal: refusalOf(value) };
  return { type: value.type === 'pong' ? 'pong' : 'other' };
}

function refusalOf({ message, toolCallId }: Record<string, unknown>): Refusal {
  return {
    message: typeof message === 'string' ? message : 'The server refused it.',
    toolCallId: typeof toolCallId === 'string' ? toolCallId : undefined,
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
