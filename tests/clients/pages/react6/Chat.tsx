import { Chat as ChatState, useChat } from '@ai-sdk/react';
import type { UIMessage } from 'ai';
import { useState } from 'react';

import { sendAutomaticallyWhen, transport, type StoredChat } from '../chat';
import { Messages } from '../react/Messages';
import { runTool } from '../tools';

function createState(stored: StoredChat) {
  const state: ChatState<UIMessage> = new ChatState({
    id: stored.id,
    messages: stored.messages,
    transport,
    sendAutomaticallyWhen,
    onToolCall: ({ toolCall }) => void runTool(toolCall, state.addToolOutput),
  });
  return state;
}

export function Chat({ stored }: { stored: StoredChat }) {
  const [state] = useState(() => createState(stored));
  const chat = useChat({ chat: state, resume: stored.activeStreamId != null });
  return <Messages chat={chat} />;
}
