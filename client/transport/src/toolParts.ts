// What the helpers read of a message. Not `isToolUIPart` of `ai`: nothing is imported from it at run time.

import type { UIMessage } from 'ai';

/** The tool whose calls are questions to the person, in the profile `adk`. */
export const CONFIRMATION_TOOL = 'adk_request_confirmation';
/** The tool with which an agent asks the person for text; its output is the answer. */
export const QUESTION_TOOL = 'adk_request_input';

/** A part of a message that shows a tool call; those of ai 6 and ai 7 fit. */
export interface ToolPart {
  type: string;
  toolCallId: string;
  state: string;
  toolName?: string | undefined;
  input?: unknown;
  output?: unknown;
  errorText?: string | undefined;
  preliminary?: boolean | undefined;
  providerExecuted?: boolean | undefined;
  approval?: { id: string; approved?: boolean | undefined } | undefined;
}

/** The tool calls of a message, in their order. */
export function toolPartsOf(message: Pick<UIMessage, 'parts'>): ToolPart[] {
  return (message.parts as object[]).filter(isToolPart);
}

/** The tool calls of the last step of a message: what its newest request to the model brought. */
export function lastStepOf(message: Pick<UIMessage, 'parts'>): ToolPart[] {
  const types: string[] = message.parts.map(part => part.type);
  const begin = types.lastIndexOf('step-start');
  return (message.parts.slice(begin + 1) as object[]).filter(isToolPart);
}

export function toolNameOf(part: ToolPart): string {
  return part.type === 'dynamic-tool' ? (part.toolName ?? '') : part.type.slice('tool-'.length);
}

export function isConfirmation(part: ToolPart): boolean {
  return toolNameOf(part) === CONFIRMATION_TOOL;
}

/** The id of the call that a confirmation is about, or undefined if its input does not say. */
export function confirmedCallOf(input: unknown): string | undefined {
  const call = isRecord(input) ? input.originalFunctionCall : undefined;
  return isRecord(call) && typeof call.id === 'string' ? call.id : undefined;
}

/** Whether the output of a confirmation is a yes that still counts: the call may have expired since. */
export function isYes(output: unknown): boolean {
  return isRecord(output) && output.confirmed === true && output.outcome === undefined;
}

/** Whether a call has come to its end: there is an output, an error or a denial. */
export function isSettled({ state, preliminary }: ToolPart): boolean {
  if (state === 'output-available') return preliminary !== true;
  return state === 'output-error' || state === 'output-denied';
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isToolPart(part: object): part is ToolPart {
  const { type } = part as { type: string };
  return (type.startsWith('tool-') || type === 'dynamic-tool') && 'toolCallId' in part;
}
