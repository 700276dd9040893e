// What of a message waits for the person or for this browser, in both profiles.

import { confirmedCallOf, isConfirmation, QUESTION_TOOL, toolNameOf } from 'adk-stream-client';
import { isToolUIPart, type DynamicToolUIPart, type ToolUIPart, type UIMessage } from 'ai';

import type { Card, Status } from '../server/api.ts';

export type ToolPart = ToolUIPart | DynamicToolUIPart;

export { isConfirmation, toolNameOf };

/** A call that waits for a decision. */
export interface Asked {
  /** What the answer names: the approval's id, which in the profile `adk` is the confirmation's. */
  approvalId: string;
  callId: string;
  toolName: string;
  input: unknown;
  hint: string | undefined;
  part: ToolPart;
}

interface Confirmation {
  originalFunctionCall?: { id?: string; name?: string; args?: unknown };
  toolConfirmation?: { hint?: string };
}

/** What a confirmation was answered with; `outcome`: nobody decided. */
interface Answer {
  confirmed?: boolean;
  outcome?: Status;
  reason?: string;
}

export const toolsOf = (message: UIMessage): ToolPart[] => message.parts.filter(isToolUIPart);

/** Returns what a part asks the person to decide; undefined if it asks nothing. */
export function askedBy(part: ToolPart): Asked | undefined {
  if (part.state === 'approval-requested') {
    return {
      approvalId: part.approval.id,
      callId: part.toolCallId,
      toolName: toolNameOf(part),
      input: part.input,
      hint: undefined,
      part,
    };
  }
  if (isConfirmation(part) && part.state === 'input-available') {
    const { originalFunctionCall: call = {}, toolConfirmation } = part.input as Confirmation;
    return {
      approvalId: part.toolCallId,
      callId: call.id ?? '',
      toolName: call.name ?? '',
      input: call.args,
      hint: toolConfirmation?.hint,
      part,
    };
  }
  return undefined;
}

export const asksOf = (message: UIMessage | undefined): Asked[] =>
  message === undefined ? [] : toolsOf(message).flatMap(part => askedBy(part) ?? []);

/** Says whether answers were given in a message that nothing came of yet. */
export const isAnswering = (message: UIMessage): boolean =>
  toolsOf(message).some(
    part =>
      part.state === 'approval-responded' ||
      (part.state === 'input-available' && isAskedAndAnswered(part, message)),
  );

const isAskedAndAnswered = (call: ToolPart, message: UIMessage): boolean =>
  toolsOf(message).some(
    part =>
      isConfirmation(part) &&
      part.state === 'output-available' &&
      confirmedCallOf(part.input) === call.toolCallId,
  );

/** Says whether the agent's question waits for an answer. */
export const isQuestion = (part: ToolPart): boolean =>
  toolNameOf(part) === QUESTION_TOOL && part.state === 'input-available';

/** Returns the calls that an ADK confirmation of this message asks for and that nobody answered. */
export const callsAskedFor = (message: UIMessage): Set<string> =>
  new Set(asksOf(message).map(({ callId }) => callId));

/**
 * Returns the cards of a message by the id of their call: one that a policy decided has no approval.
 *
 * The profile `adk` has none; what a confirmation was answered with tells how its call was decided.
 */
export function cardsOf(message: UIMessage): Map<string, Card> {
  const cards = new Map<string, Card>();
  for (const part of toolsOf(message)) {
    const toolCallId = isConfirmation(part) ? confirmedCallOf(part.input) : undefined;
    if (toolCallId === undefined || part.state !== 'output-available') continue;
    const { confirmed, outcome, reason } = (part.output ?? {}) as Answer;
    const status = outcome ?? (confirmed ? 'approved' : 'denied');
    const toolName = (part.input as Confirmation).originalFunctionCall?.name ?? '';
    cards.set(toolCallId, { toolCallId, toolName, status, ...(reason && { reason }) });
  }
  for (const part of message.parts) {
    if (part.type !== 'data-approval') continue;
    const card = (part as { data: Card }).data;
    cards.set(card.toolCallId, card);
  }
  return cards;
}

/** Returns the text of a message, as it is copied and edited. */
export const textOf = (message: UIMessage): string =>
  message.parts
    .flatMap(part => (part.type === 'text' ? [part.text] : []))
    .join('\n\n');
