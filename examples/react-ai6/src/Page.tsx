import { SocketChatTransport } from 'adk-stream-client';
import { DefaultChatTransport, generateId, type ChatTransport, type UIMessage } from 'ai';
import { useMemo, useState } from 'react';

import { Chat } from './Chat';

const MODES = {
  'POST and SSE': () => new DefaultChatTransport({ api: '/api/chat' }),
  WebSocket: () => new SocketChatTransport({ url: '/api/chat/ws' }),
  'WebSocket, live': () => new SocketChatTransport({ url: '/api/chat/live' }),
} satisfies Record<string, () => ChatTransport<UIMessage>>;

type Mode = keyof typeof MODES;

/** One chat, and the way it talks to the server: a chat may change it at any time. */
export function Page() {
  const [mode, setMode] = useState<Mode>('POST and SSE');
  const [id] = useState(generateId);
  const [messages, setMessages] = useState<UIMessage[]>([]);
  const transport = useMemo(() => MODES[mode](), [mode]);
  return (
    <main>
      <h1>React and ai 6</h1>
      {(Object.keys(MODES) as Mode[]).map(name => (
        <label key={name}>
          <input type="radio" checked={name === mode} onChange={() => setMode(name)} /> {name}
        </label>
      ))}
      <Chat key={mode} id={id} transport={transport} messages={messages} keep={setMessages} />
    </main>
  );
}
