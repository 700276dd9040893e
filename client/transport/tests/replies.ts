// What the server tells, as docs/reference/protocol.md has it.

export const CONFIRM = 'adk_request_confirmation';

type Chunk = Record<string, unknown> & { type: string };

export const start = (messageId: string): Chunk => ({ type: 'start', messageId });
export const finish = (finishReason = 'stop'): Chunk => ({ type: 'finish', finishReason });
export const text = (value: string): Chunk[] => [
  { type: 'start-step' },
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: value },
  { type: 'text-end', id: 't' },
  { type: 'finish-step' },
];
export const call = (toolCallId: string, toolName: string, fields: object = {}): Chunk => ({
  type: 'tool-input-available',
  toolCallId,
  toolName,
  input: { amount: 5 },
  ...fields,
});
export const output = (toolCallId: string, value: unknown): Chunk => ({
  type: 'tool-output-available',
  toolCallId,
  output: value,
});
/** A call that the person is asked for, in the profile `adk`. */
export const gated = (
  id: string,
  name = 'process_payment',
  fields: object = { providerExecuted: true },
): Chunk[] => [
  call(id, name, fields),
  call(`confirm-${id}`, CONFIRM, {
    input: {
      originalFunctionCall: { id, name, args: { amount: 5 } },
      toolConfirmation: { hint: '', confirmed: false },
    },
  }),
];
/** A call that the person is asked for, in the profile `ai-sdk`. */
export const approval = (id: string, name = 'process_payment'): Chunk[] => [
  call(id, name),
  { type: 'tool-approval-request', approvalId: `approval-${id}`, toolCallId: id },
];
/** The same of a call that the browser runs: `tool-input-available` comes once it is approved. */
export const heldBack = (toolCallId: string, toolName: string): Chunk[] => [
  { type: 'tool-input-start', toolCallId, toolName },
  { type: 'tool-input-delta', toolCallId, inputTextDelta: '{"amount":5}' },
  { type: 'tool-approval-request', approvalId: `approval-${toolCallId}`, toolCallId },
];
/** A reply that ends while calls wait. */
export const asking = (messageId: string, ...calls: Chunk[]): Chunk[] => [
  start(messageId),
  { type: 'start-step' },
  ...calls,
  { type: 'finish-step' },
  finish('tool-calls'),
];
/** What the server says after the answers. */
export const goingOn = (messageId: string, ...outputs: Chunk[]): Chunk[] => [
  start(messageId),
  ...outputs,
  ...text('Done.'),
  finish(),
];
