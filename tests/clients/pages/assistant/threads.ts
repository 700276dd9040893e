import type { RemoteThreadListAdapter, ThreadHistoryAdapter } from '@assistant-ui/react';
import { createAssistantStream } from 'assistant-stream';

import { loadChat } from '../chat';

interface ListedChat {
  id: string;
  title: string;
  updatedAt: string;
  archived: boolean;
}

async function call(path: string, method = 'GET', body?: object) {
  const response = await fetch(`/api/chats${path}`, {
    method,
    headers: { 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  if (!response.ok) throw new Error(await response.text());
  return response;
}

const pathOf = (id: string) => `/${encodeURIComponent(id)}`;

const toThread = ({ id, title, updatedAt, archived }: ListedChat) => ({
  remoteId: id,
  title,
  status: archived ? ('archived' as const) : ('regular' as const),
  lastMessageAt: new Date(updatedAt),
});

const change = (id: string, changes: object) => call(pathOf(id), 'PATCH', changes).then(() => {});

/** The chats of the server as assistant-ui's thread list. */
export const threadList: RemoteThreadListAdapter = {
  async list({ after } = {}) {
    const page = { limit: '20', archived: 'all', ...(after && { cursor: after }) };
    const { chats, nextCursor } = await (await call(`?${new URLSearchParams(page)}`)).json();
    return { threads: chats.map(toThread), nextCursor };
  },
  fetch: async id => toThread(await (await call(pathOf(id))).json()),
  // The server makes a chat of the first message.
  initialize: async () => ({ remoteId: crypto.randomUUID() }),
  rename: (id, title) => change(id, { title }),
  archive: id => change(id, { archived: true }),
  unarchive: id => change(id, { archived: false }),
  delete: id => call(pathOf(id), 'DELETE').then(() => {}),
  // As the server names it: after the first message.
  generateTitle: async (_, messages) => {
    const title = messages[0]?.content.map(part => (part.type === 'text' ? part.text : '')).join('');
    return createAssistantStream(stream => stream.appendText(title?.slice(0, 80) ?? ''));
  },
};

/** The messages of a chat as assistant-ui's history; the server writes them by itself. */
export const historyOf = (getId: () => string | undefined): ThreadHistoryAdapter => ({
  load: async () => ({ messages: [] }),
  append: async () => {},
  withFormat: <Message>() => ({
    async load() {
      const { messages } = await loadChat(getId()!);
      const items = messages.map((message, index) => ({
        parentId: messages[index - 1]?.id ?? null,
        message: message as Message,
      }));
      return { messages: items, headId: messages.at(-1)?.id ?? null };
    },
    append: async () => {},
  }),
});
