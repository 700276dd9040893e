import { DefaultChatTransport, getToolName, isToolUIPart, type UIMessage } from 'ai';

/**
 * The habits of the seeds' own page: confirmations are a tool whose output is the verdict, and the
 * list is sent for as long as a confirmed call has no output of its own.
 */
export const CONFIRMATION = 'adk_request_confirmation';

interface Confirmation {
  originalFunctionCall: { id: string };
}

export const transport = new DefaultChatTransport({ api: '/stream' });

export const sendAutomaticallyWhen = ({ messages }: { messages: UIMessage[] }) => {
  const calls = messages.at(-1)!.parts.filter(isToolUIPart);
  return calls.some(confirmation => {
    if (getToolName(confirmation) !== CONFIRMATION) return false;
    const { originalFunctionCall } = confirmation.input as Confirmation;
    const original = calls.find(call => call.toolCallId === originalFunctionCall.id);
    return confirmation.state === 'output-available' && original?.state === 'input-available';
  });
};
