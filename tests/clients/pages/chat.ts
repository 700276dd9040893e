import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses as approvalsComplete,
  lastAssistantMessageIsCompleteWithToolCalls as outputsComplete,
  type UIMessage,
} from 'ai';

export interface StoredChat {
  id: string;
  messages: UIMessage[];
  /** The reply that runs now; null if none does. */
  activeStreamId: string | null;
}

/** Reads a chat as it stands. One that nobody wrote in yet is empty. */
export async function loadChat(id: string): Promise<StoredChat> {
  const response = await fetch(`/api/chats/${encodeURIComponent(id)}`);
  if (response.status === 404) return { id, messages: [], activeStreamId: null };
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

export const transport = new DefaultChatTransport({
  api: '/api/chat?sdk=7',
  // The server has the history: send the last message, or the earlier one that is answered.
  prepareSendMessagesRequest: ({ id, messages, trigger, messageId, body }) => ({
    body: {
      ...body,
      id,
      trigger,
      messageId,
      messages: messages.filter(each => each === messages.at(-1) || each.id === messageId),
    },
  }),
});

/** True once every approval and every tool of the browser has its answer. */
export const sendAutomaticallyWhen = ({ messages }: { messages: UIMessage[] }) =>
  approvalsComplete({ messages }) || outputsComplete({ messages });

interface Sending {
  messages: UIMessage[];
  sendMessage: () => Promise<void>;
  regenerate: () => Promise<void>;
}

/** Sends again what failed: the answers as they were given, else the question. */
export const retry = ({ messages, sendMessage, regenerate }: Sending) =>
  sendAutomaticallyWhen({ messages }) ? sendMessage() : regenerate();
