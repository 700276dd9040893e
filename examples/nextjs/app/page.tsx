import { Chat } from './chat';

// Read for each request: the server's port is not known when the page is built.
export const dynamic = 'force-dynamic';

export default function Page() {
  const server = process.env.AGENT_SERVER ?? 'http://127.0.0.1:8000';
  return <Chat socket={`${server.replace('http', 'ws')}/api/chat/live`} />;
}
