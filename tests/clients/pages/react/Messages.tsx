import type { UseChatHelpers } from '@ai-sdk/react';
import {
  getToolName,
  isToolUIPart,
  type DynamicToolUIPart,
  type ToolUIPart,
  type UIMessage,
} from 'ai';
import { useState, type ReactNode } from 'react';

import { retry } from '../chat';

export interface ToolProps {
  part: ToolUIPart | DynamicToolUIPart;
  decide: (approved: boolean) => void;
}

function ToolCall({ part, decide }: ToolProps) {
  return (
    <p role="group" aria-label={getToolName(part)}>
      {getToolName(part)} {JSON.stringify(part.input)}: {part.state}
      {part.state === 'approval-requested' && (
        <>
          <button onClick={() => decide(true)}>Approve</button>
          <button onClick={() => decide(false)}>Deny</button>
        </>
      )}
    </p>
  );
}

interface MessagesProps {
  chat: UseChatHelpers<UIMessage>;
  Tool?: (props: ToolProps) => ReactNode;
}

export function Messages({ chat, Tool = ToolCall }: MessagesProps) {
  const [text, setText] = useState('');
  const [edited, setEdited] = useState<string>();
  const busy = chat.status === 'submitted' || chat.status === 'streaming';

  function send() {
    void chat.sendMessage({ text, messageId: edited });
    setText('');
    setEdited(undefined);
  }

  return (
    <main aria-busy={busy}>
      {chat.messages.map(message => (
        <article key={message.id} aria-label={message.role}>
          {message.parts.map((part, index) => {
            if (part.type === 'text') return <p key={index}>{part.text}</p>;
            if (!isToolUIPart(part)) return null;
            const decide = (approved: boolean) =>
              chat.addToolApprovalResponse({ id: part.approval!.id, approved });
            return <Tool key={part.toolCallId} part={part} decide={decide} />;
          })}
          {message.role === 'user' && <button onClick={() => setEdited(message.id)}>Edit</button>}
        </article>
      ))}
      {chat.error && (
        <div role="alert">
          {chat.error.message}
          <button onClick={() => retry(chat)}>Retry</button>
        </div>
      )}
      <form action={send}>
        <input aria-label="Message" value={text} onChange={event => setText(event.target.value)} />
        <button>Send</button>
      </form>
      <button disabled={!busy} onClick={chat.stop}>Stop</button>
      <button onClick={() => chat.regenerate()}>Regenerate</button>
    </main>
  );
}
