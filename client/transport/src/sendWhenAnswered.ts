import type { UIMessage } from 'ai';

import { BrowserTools } from './browserTools.js';
import {
  confirmedCallOf,
  isConfirmation,
  isRecord,
  isSettled,
  isYes,
  lastStepOf,
  QUESTION_TOOL,
  toolNameOf,
  type ToolPart,
} from './toolParts.js';

export interface SendWhenAnsweredOptions {
  /**
   * What runs the tools of this page, or only their names: then an end of such a call that the server told
   * of, such as its expiry, is taken for an answer if no step follows it.
   */
  browserTools?: BrowserTools | readonly string[];
}

/** The calls that this page answers by running something. */
interface Ours {
  names: Set<string>;
  hasRun: (toolCallId: string) => boolean;
}

/** How a held call stands: nobody answered, somebody did, or there is nothing to answer. */
type Standing = { is: 'waiting' } | { is: 'answered'; answer: string } | { is: 'none' };

const WAITING: Standing = { is: 'waiting' };
const NONE: Standing = { is: 'none' };

/**
 * Makes a `sendAutomaticallyWhen`: send once every call of the last step that waits for this page has
 * its answer, be it an approval, a denial, or what the browser made of it.
 *
 * An answer is sent once, whatever the reply does to the part; a send that failed is repeated by
 * `sendMessage()`. Make one for each chat.
 */
export function sendWhenAnswered({ browserTools = [] }: SendWhenAnsweredOptions = {}): (state: {
  messages: UIMessage[];
}) => boolean {
  const isRunner = browserTools instanceof BrowserTools;
  const ours: Ours = {
    names: new Set([...(isRunner ? browserTools.names : browserTools), QUESTION_TOOL]),
    hasRun: toolCallId => !isRunner || browserTools.hasRun(toolCallId),
  };
  // What was sent, by call.
  const sent = new Map<string, string>();

  return ({ messages }) => {
    const last = messages.at(-1);
    if (last?.role !== 'assistant') return false;
    const step = lastStepOf(last);
    const standings = step.map(part => [part.toolCallId, standingOf(part, step, ours)] as const);
    // What waits again may be answered again in the same way: an approval with several steps.
    for (const [id, { is }] of standings) if (is === 'waiting') sent.delete(id);
    if (standings.some(([, { is }]) => is === 'waiting')) return false;
    const news = standings.flatMap(([id, standing]) =>
      standing.is === 'answered' && sent.get(id) !== standing.answer ? [[id, standing.answer]] : [],
    ) as [string, string][];
    for (const [id, answer] of news) sent.set(id, answer);
    return news.length > 0;
  };
}

function standingOf(part: ToolPart, step: ToolPart[], ours: Ours): Standing {
  const name = toolNameOf(part);
  const isOurs = ours.names.has(name);
  switch (part.state) {
    case 'input-streaming':
    case 'approval-requested':
      return WAITING;
    case 'approval-responded': {
      const { approved, id } = part.approval ?? {};
      return approved && isOurs ? WAITING : answered(id, approved);
    }
    case 'input-available':
      return whileUnsettled(part, step, isOurs);
  }
  if (!isSettled(part)) return WAITING;
  if (isConfirmation(part)) return confirmed(part, step, ours);
  const isAnswer =
    isOurs &&
    (name === QUESTION_TOOL ? part.state === 'output-available' : ours.hasRun(part.toolCallId));
  return isAnswer && part.state !== 'output-denied' ? answered(part.state, part.output) : NONE;
}

// Without an approval of its own, the profile `adk` asks for a call in another one.
function whileUnsettled(part: ToolPart, step: ToolPart[], isOurs: boolean): Standing {
  if (isConfirmation(part)) return WAITING;
  const question = step.find(
    each => isConfirmation(each) && confirmedCallOf(each.input) === part.toolCallId,
  );
  // The question stands for it; only what the browser must run has an output to wait for.
  if (question !== undefined) return isOurs && isYes(question.output) ? WAITING : NONE;
  return part.providerExecuted === true ? NONE : WAITING;
}

function confirmed(question: ToolPart, step: ToolPart[], ours: Ours): Standing {
  // Nobody answered, the server says: it expired, or was cancelled.
  if (isRecord(question.output) && 'outcome' in question.output) return NONE;
  const call = step.find(part => part.toolCallId === confirmedCallOf(question.input));
  const isRun = call !== undefined && ours.names.has(toolNameOf(call)) && isYes(question.output);
  // The server went on with it: the answer came from there, or was taken.
  const isTaken = call !== undefined && isSettled(call) && !isRun;
  return isTaken ? NONE : answered(question.state, question.output);
}

function answered(...what: unknown[]): Standing {
  return { is: 'answered', answer: JSON.stringify(what) };
}
