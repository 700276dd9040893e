import { DefaultChatTransport, isToolUIPart, type UIMessage } from 'ai';

/**
 * The habits of Vercel's chat template: the last message alone and without a trigger, the whole list
 * once something was decided, and an automatic send as soon as anything was approved.
 */
const isDecided = (message: UIMessage) =>
  message.parts.some(part => isToolUIPart(part) && part.state === 'approval-responded');

export const transport = new DefaultChatTransport({
  api: '/api/chat?sdk=7',
  prepareSendMessagesRequest: ({ id, messages }) => {
    const last = messages.at(-1)!;
    const whole = last.role !== 'user' || messages.some(isDecided);
    return { body: whole ? { id, messages } : { id, message: last } };
  },
});

export const sendAutomaticallyWhen = ({ messages }: { messages: UIMessage[] }) =>
  messages
    .at(-1)!
    .parts.some(
      part => isToolUIPart(part) && part.state === 'approval-responded' && part.approval.approved,
    );
