import { useChat } from '@ai-sdk/react';
import {
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
} from 'ai';
import { createRoot } from 'react-dom/client';

import { transportTo } from './transport';

const query = new URLSearchParams(location.search);
const transport = transportTo(query.get('server')!, () => query.get('token')!);

function Chat() {
  const chat = useChat({
    id: query.get('chat')!,
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    resume: true,
  });
  return (
    <main aria-busy={chat.status === 'submitted' || chat.status === 'streaming'}>
      {chat.messages.map(message => (
        <article key={message.id} aria-label={message.role}>
          {message.parts.map((part, index) => {
            if (part.type === 'text') return <p key={index}>{part.text}</p>;
            if (!isToolUIPart(part)) return null;
            const approve = () =>
              chat.addToolApprovalResponse({ id: part.approval!.id, approved: true });
            return (
              <p key={index} role="group" aria-label={getToolName(part)}>
                {getToolName(part)}: {part.state}
                {part.state === 'approval-requested' && <button onClick={approve}>Approve</button>}
              </p>
            );
          })}
        </article>
      ))}
      {chat.error && <div role="alert">{chat.error.message}</div>}
      <form action={form => chat.sendMessage({ text: String(form.get('text')) })}>
        <input name="text" aria-label="Message" />
        <button>Send</button>
      </form>
    </main>
  );
}

createRoot(document.getElementById('page')!).render(<Chat />);
