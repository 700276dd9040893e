import { socketFor, type AnswerTransport } from './answering.js';
import { CONFIRMATION_TOOL, isConfirmation, type ToolPart } from './toolParts.js';

/** How an answer went out; `ignored` if the part does not ask, or was answered before. */
export type ConfirmationResult = 'websocket' | 'chat' | 'ignored';

// Parts that were answered. The same object is no new question, whatever its state says.
const answered = new WeakSet<object>();
// Ids whose answer is on its way into the chat's messages, which have a new object for the part then.
const underway = new Set<string>();

/**
 * Approves or denies the call that a part asks for: one in the state `approval-requested`, or a call of
 * `adk_request_confirmation` that has no output.
 *
 * Goes over the socket while the call's reply is open there, else by the functions of the chat, whose
 * `sendAutomaticallyWhen` sends it. Either way the part shows it at once. A second click does nothing.
 */
export async function handleConfirmation(
  part: ToolPart,
  confirmed: boolean,
  transport: AnswerTransport,
  reason?: string,
): Promise<ConfirmationResult> {
  const id = questionOf(part);
  if (id === undefined || answered.has(part) || underway.has(id)) return 'ignored';
  answered.add(part);
  underway.add(id);
  try {
    const socket = socketFor(transport, id);
    const result = { confirmed, ...(reason !== undefined && { reason }) };
    // Before the chat knows: it may be about to send by itself.
    void socket?.sendToolResult({
      chatId: transport.chatId ?? '',
      toolCallId: id,
      toolName: CONFIRMATION_TOOL,
      result,
    });
    if (isConfirmation(part)) {
      await transport.addToolOutput?.({ tool: CONFIRMATION_TOOL, toolCallId: id, output: result });
    } else {
      const { confirmed: approved, ...why } = result;
      await transport.addToolApprovalResponse?.({ id, approved, ...why });
    }
    return socket === undefined ? 'chat' : 'websocket';
  } catch (error) {
    answered.delete(part);
    throw error;
  } finally {
    underway.delete(id);
  }
}

/** The id that an answer must name: exactly as it came. */
function questionOf(part: ToolPart): string | undefined {
  if (part.state === 'approval-requested') return part.approval?.id;
  const isAsked = isConfirmation(part) && part.state === 'input-available';
  return isAsked ? part.toolCallId : undefined;
}
