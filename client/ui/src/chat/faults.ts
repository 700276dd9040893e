// What went wrong with a reply, told apart by what the person can do about it.

import { Refusal, Unreachable } from '../server/api.ts';

/** Says whether the server or the way to it is gone, so that trying again helps. */
export const isLost = (error: unknown): boolean =>
  error instanceof Unreachable || error instanceof TypeError;

/** Returns what the server said; its message says what to do. */
export function told(error: unknown): { text: string; code?: string; errorId?: string } {
  if (error instanceof Refusal) {
    return {
      text: error.message,
      ...(error.code !== undefined && { code: error.code }),
      ...(error.errorId !== undefined && { errorId: error.errorId }),
    };
  }
  return { text: error instanceof Error ? error.message : String(error) };
}
