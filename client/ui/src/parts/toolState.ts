import type { ToolPart } from '../chat/asked.ts';
import type { Card, Status } from '../server/api.ts';
import type { Texts } from '../texts/en.ts';

export type ToolState = keyof Texts['toolStates'];

const UNDONE: ReadonlySet<Status> = new Set(['denied', 'expired', 'cancelled', 'unknown']);

/** Returns what a call's state is called: the ledger knows more than the part. */
export function stateOf(part: ToolPart, card: Card | undefined, isWaiting: boolean): ToolState {
  switch (part.state) {
    case 'input-streaming':
      return 'preparing';
    case 'approval-requested':
      return 'waiting';
    case 'approval-responded':
      return part.approval.approved ? 'approved' : 'denied';
    case 'output-available':
      return part.preliminary ? 'running' : 'done';
    case 'output-denied':
      return 'denied';
    case 'output-error':
      // In the profile `adk` a denial is an error, too.
      return card !== undefined && UNDONE.has(card.status) ? (card.status as ToolState) : 'failed';
    default:
      return isWaiting ? 'waiting' : 'running';
  }
}
