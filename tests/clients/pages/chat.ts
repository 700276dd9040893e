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

interface Failed {
  messages: UIMessage[];
  error: Error | undefined;
  sendMessage: () => Promise<void>;
  regenerate: () => Promise<void>;
  resumeStream: () => Promise<void>;
}

/** Tries again what failed. */
export function retry({ messages, error, sendMessage, regenerate, resumeStream }: Failed) {
  // Answers are sent again as they were given.
  if (sendAutomaticallyWhen({ messages })) return sendMessage();
  // A TypeError is fetch's word for a lost connection: the reply went on without us.
  if (messages.at(-1)?.role === 'assistant' && error instanceof TypeError) return resumeStream();
  return regenerate();
}
