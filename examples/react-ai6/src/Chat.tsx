import { useChat } from '@ai-sdk/react';
import {
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type ChatTransport,
  type UIMessage,
} from 'ai';
import { useEffect, useState } from 'react';

interface ChatProps {
  id: string;
  transport: ChatTransport<UIMessage>;
  /** What was said before, in whichever mode. */
  messages: UIMessage[];
  keep: (messages: UIMessage[]) => void;
}

export function Chat({ id, transport, messages: earlier, keep }: ChatProps) {
  const [text, setText] = useState('Send 50 dollars to Hanako');
  const { messages, sendMessage, addToolApprovalResponse, status, error } = useChat({
    id,
    transport,
    messages: earlier,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  useEffect(() => keep(messages), [messages, keep]);
  return (
    <>
      {messages.map(message => (
        <article key={message.id}>
          <b>{message.role}</b>
          {message.parts.map((part, index) => {
            if (part.type === 'text') return <p key={index}>{part.text}</p>;
            if (!isToolUIPart(part)) return null;
            return (
              <p key={part.toolCallId}>
                {getToolName(part)} {JSON.stringify(part.input)}: {part.state}
                {part.state === 'approval-requested' &&
                  [false, true].map(approved => (
                    <button
                      key={String(approved)}
                      onClick={() => addToolApprovalResponse({ id: part.approval.id, approved })}
                    >
                      {approved ? 'Approve' : 'Deny'}
                    </button>
                  ))}
              </p>
            );
          })}
        </article>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form
        onSubmit={event => {
          event.preventDefault();
          void sendMessage({ text });
          setText('');
        }}
      >
        <input value={text} onChange={event => setText(event.target.value)} aria-label="Message" />
        <button disabled={status !== 'ready' && status !== 'error'}>Send</button>
      </form>
    </>
  );
}
