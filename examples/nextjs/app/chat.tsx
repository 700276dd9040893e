'use client';

import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  WebSocketChatTransport,
} from 'ai';
import { useMemo, useState } from 'react';

export function Chat({ socket }: { socket: string }) {
  const [live, setLive] = useState(false);
  return (
    <main>
      <h1>Next.js and AI SDK 7</h1>
      <label>
        <input type="checkbox" checked={live} onChange={event => setLive(event.target.checked)} />{' '}
        Live, over a WebSocket
      </label>
      <Messages key={String(live)} socket={live ? socket : undefined} />
    </main>
  );
}

function Messages({ socket }: { socket: string | undefined }) {
  const [text, setText] = useState('Send 50 dollars to Hanako');
  const transport = useMemo(
    () =>
      socket === undefined
        ? new DefaultChatTransport({ api: '/api/chat' })
        : new WebSocketChatTransport({ url: socket }),
    [socket],
  );
  const { messages, sendMessage, addToolApprovalResponse, status, error } = useChat({
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
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
