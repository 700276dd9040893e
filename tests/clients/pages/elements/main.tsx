import { useChat } from '@ai-sdk/react';
import { createRoot } from 'react-dom/client';

import { sendAutomaticallyWhen, transport } from '../chat';
import { chatOfThePage } from '../page';
import { Messages } from '../react/Messages';
import { runTool } from '../tools';
import { Tool } from './Tool';

const stored = await chatOfThePage();

function Chat() {
  const chat = useChat({
    id: stored.id,
    messages: stored.messages,
    resume: stored.activeStreamId != null,
    transport,
    sendAutomaticallyWhen,
    onToolCall: ({ toolCall }) => void runTool(toolCall, chat.addToolOutput),
  });
  return <Messages chat={chat} Tool={Tool} />;
}

createRoot(document.getElementById('page')!).render(<Chat />);
