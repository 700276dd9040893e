import type { ToolPart } from '../chat/asked.ts';
import type { Card } from '../server/api.ts';
import type { Texts } from '../texts/en.ts';

export type ToolState = keyof Texts['toolStates'];

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
      if (card?.status === 'expired' || card?.status === 'cancelled' || card?.status === 'unknown') {
        return card.status;
      }
      return card === undefined ? toldBy(part.errorText) : 'failed';
    default:
      return isWaiting ? 'waiting' : 'running';
  }
}

// The profile `adk` has no cards; the server's own words tell what became of a call there.
const OUTCOMES: readonly [string, ToolState][] = [
  ['User denied execution', 'denied'],
  ['Denied by policy;', 'denied'],
  ['No decision came in time;', 'expired'],
  ['The call was cancelled before a decision;', 'cancelled'],
];

const toldBy = (errorText: string): ToolState =>
  OUTCOMES.find(([words]) => errorText.startsWith(words))?.[1] ?? 'failed';
