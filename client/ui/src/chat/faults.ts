// What went wrong with a reply, told apart by what the person can do about it.

import { APICallError } from 'ai';

import { refusalOf, Refusal, Unreachable } from '../server/api.ts';

/** Says whether the server or the way to it is gone, so that trying again helps. */
export const isLost = (error: unknown): boolean =>
  error instanceof Unreachable ||
  error instanceof TypeError ||
  (error instanceof APICallError && [502, 503, 504].includes(error.statusCode ?? 0));

/** Returns what the server said; its message says what to do. */
export function told(error: unknown): { text: string; code?: string; errorId?: string } {
  const refusal =
    error instanceof APICallError && error.responseBody !== undefined
      ? refusalOf(error.statusCode ?? 0, error.responseBody)
      : error;
  if (refusal instanceof Refusal) {
    return {
      text: refusal.message,
      ...(refusal.code !== undefined && { code: refusal.code }),
      ...(refusal.errorId !== undefined && { errorId: refusal.errorId }),
    };
  }
  return { text: refusal instanceof Error ? refusal.message : String(refusal) };
}
