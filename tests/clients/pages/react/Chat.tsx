import { useChat } from '@ai-sdk/react';

import { sendAutomaticallyWhen, transport, type StoredChat } from '../chat';
import { runTool } from '../tools';
import { Messages } from './Messages';

export function Chat({ stored }: { stored: StoredChat }) {
  const chat = useChat({
    id: stored.id,
    messages: stored.messages,
    resume: stored.activeStreamId != null,
    transport,
    sendAutomaticallyWhen,
    // Not awaited: the stream waits for this callback, and the output for the stream.
    onToolCall: ({ toolCall }) => void runTool(toolCall, chat.addToolOutput),
  });
  return <Messages chat={chat} />;
}
