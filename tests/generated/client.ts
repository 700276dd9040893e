// A client of the server that knows nothing but what openapi-typescript made of its description.
// Each `@ts-expect-error` is a mistake that the description must keep a program from making.
import createClient from 'openapi-fetch';
import type { UIMessage as UIMessage6 } from 'ai6';
import type { UIMessage as UIMessage7 } from 'ai7';
import type { components, paths } from './schema';

declare const process: { argv: string[] };

type Approval = components['schemas']['ApprovalShape'];
type Failure = components['schemas']['ErrorShape'] | string | undefined;

const url = process.argv[2];
// Errors of chat routes are a plain sentence unless JSON is asked for.
const client = createClient<paths>({ baseUrl: url, headers: { accept: 'application/json' } });

function codeOf(error: Failure): string {
  return typeof error === 'object' ? error.error.code : `no code: ${error}`;
}

async function say(id: string, text: string): Promise<string> {
  const { data, response } = await client.POST('/api/chat', {
    params: { query: { sdk: '7' } },
    body: { id, messages: [{ id: `${id} ${text}`, role: 'user', parts: [{ type: 'text', text }] }] },
    parseAs: 'text',
  });
  return response.status === 200 && typeof data === 'string' ? data : `${response.status}`;
}

const replied = await say('typed', 'hi');
const chats = await client.GET('/api/chats');
const chat = await client.GET('/api/chats/{chat_id}', { params: { path: { chat_id: 'typed' } } });
await say('typed', 'pay 5');
const pending = await client.GET('/api/approvals', { params: { query: { status: 'pending' } } });
const [approval]: Approval[] = pending.data?.approvals ?? [];
const decided = await client.POST('/api/approvals/{approval_id}', {
  params: { path: { approval_id: approval.id } },
  body: { approved: false, reason: 'Not today.' },
});
const again = await client.POST('/api/approvals/{approval_id}', {
  params: { path: { approval_id: approval.id } },
  body: { approved: true },
});
// The refusal is the approval as it is, and typed so.
const conflict = again.error && 'status' in again.error ? again.error.status : undefined;
const audit = await client.GET('/api/audit', { params: { query: { arguments: true } } });
const events = typeof audit.data === 'object' ? audit.data.trail.map(line => line.event) : [];
const nowhere = await client.GET('/api/chats/{chat_id}', {
  params: { path: { chat_id: 'nowhere' } },
});
const empty = await client.POST('/api/chat', { body: { messages: [] } });

// What a page of the AI SDK has is what the server takes.
export const ofSix = (messages: UIMessage6[]) => client.POST('/api/chat', { body: { messages } });
export const ofSeven = (message: UIMessage7) =>
  client.POST('/api/chat', { body: { id: 'c', message, parentId: null, busy: 'queue', mine: 1 } });

export const mistakes = () => [
  // @ts-expect-error there is no such version of the AI SDK
  client.POST('/api/chat', { params: { query: { sdk: '5' } }, body: { messages: [] } }),
  // @ts-expect-error nobody can be this
  client.POST('/api/chat', { body: { messages: [{ role: 'robot', parts: [] }] } }),
  // @ts-expect-error there is no such way to treat a busy chat
  client.POST('/api/chat', { body: { prompt: 'hi', busy: 'later' } }),
  // @ts-expect-error a part has a type
  client.POST('/api/chat', { body: { messages: [{ role: 'user', parts: [{ text: 'hi' }] }] } }),
  // @ts-expect-error a decision is a boolean
  client.POST('/api/approvals/{approval_id}', { params: { path: { approval_id: 'a' } }, body: { approved: 'yes' } }),
  // @ts-expect-error there is no such field
  chat.data?.tilte,
  // @ts-expect-error there is no such status
  client.GET('/api/approvals', { params: { query: { status: 'maybe' } } }),
];

console.log(
  JSON.stringify({
    replied,
    chats: chats.data?.chats.map(each => each.id),
    roles: chat.data?.messages.map(message => message.role),
    parts: chat.data?.messages.map(message => message.parts.map(part => part.type)),
    tool: approval.toolName,
    decided: decided.data?.status,
    conflict,
    events,
    nowhere: codeOf(nowhere.error),
    empty: codeOf(empty.error),
  }),
);
