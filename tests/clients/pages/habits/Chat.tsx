import { useChat } from '@ai-sdk/react';
import { getToolName, isToolUIPart, type DynamicToolUIPart, type ToolUIPart } from 'ai';
import { useState } from 'react';

import * as seeds from './seeds';
import * as template from './template';

const HABITS = { seeds, template };

interface ChatProps {
  id: string;
  habits: keyof typeof HABITS;
}

/** A page with habits that are not ours to choose. */
export function Chat({ id, habits }: ChatProps) {
  const { transport, sendAutomaticallyWhen } = HABITS[habits];
  const chat = useChat({ id, transport, sendAutomaticallyWhen });
  const [text, setText] = useState('');
  const [edited, setEdited] = useState<string>();
  const busy = chat.status === 'submitted' || chat.status === 'streaming';

  function send() {
    setText('');
    setEdited(undefined);
    if (edited === undefined) return void chat.sendMessage({ text });
    // The old id with other words, and then as if nothing but the reply were to change.
    chat.setMessages(messages => {
      const index = messages.findIndex(message => message.id === edited);
      return [...messages.slice(0, index), { ...messages[index]!, parts: [{ type: 'text', text }] }];
    });
    void chat.regenerate();
  }

  function decide(part: ToolUIPart | DynamicToolUIPart, yes: boolean) {
    if (habits === 'template')
      return void chat.addToolApprovalResponse({ id: part.approval!.id, approved: yes });
    const { toolCallId } = part;
    void chat.addToolOutput({ tool: seeds.CONFIRMATION, toolCallId, output: { confirmed: yes } });
  }

  const isAsking = (part: ToolUIPart | DynamicToolUIPart) =>
    part.state === 'approval-requested' ||
    (part.state === 'input-available' && getToolName(part) === seeds.CONFIRMATION);

  return (
    <main aria-busy={busy}>
      {chat.messages.map(message => (
        <article key={message.id} aria-label={message.role}>
          {message.parts.map((part, index) => {
            if (part.type === 'text') return <p key={index}>{part.text}</p>;
            if (!isToolUIPart(part)) return null;
            return (
              <p key={part.toolCallId} role="group" aria-label={getToolName(part)}>
                {getToolName(part)}: {part.state}
                {isAsking(part) && (
                  <>
                    <button onClick={() => decide(part, true)}>Approve</button>
                    <button onClick={() => decide(part, false)}>Deny</button>
                  </>
                )}
              </p>
            );
          })}
          {message.role === 'user' && <button onClick={() => setEdited(message.id)}>Edit</button>}
        </article>
      ))}
      {chat.error && <div role="alert">{chat.error.message}</div>}
      <form action={send}>
        <input aria-label="Message" value={text} onChange={event => setText(event.target.value)} />
        <button>Send</button>
      </form>
      <button onClick={() => chat.regenerate()}>Regenerate</button>
    </main>
  );
}
