// The JSON routes of the server. Addresses are relative: the page may be served below a prefix.

import type { UIMessage } from 'ai';

import type { Profile } from '../app/prefs.ts';

export interface ChatInfo {
  id: string;
  title: string;
  createdAt: string;
  updatedAt: string;
  archived: boolean;
}

/** What may be changed of a chat; a title that is null is the one it began with. */
export interface ChatChange {
  title?: string | null;
  archived?: boolean;
}

export interface ChatRecord extends ChatInfo {
  messages: UIMessage[];
}

export interface Step {
  n: number;
  of: number;
  name: string;
  by?: string[];
  fourEyes?: boolean;
}

export type Status =
  | 'pending'
  | 'approved'
  | 'denied'
  | 'expired'
  | 'cancelled'
  | 'running'
  | 'done'
  | 'failed'
  | 'unknown';

/** The data of a `data-approval` part. */
export interface Card {
  toolCallId: string;
  toolName: string;
  status: Status;
  title?: string;
  hint?: string;
  risk?: string;
  createdAt?: string;
  expiresAt?: string;
  payload?: unknown;
  step?: Step;
  approvedBy?: string[];
  editable?: boolean;
  editedInput?: Record<string, unknown>;
  editedBy?: string;
  editedArgumentsHash?: string;
  automatic?: boolean;
  rememberable?: boolean;
  remembered?: boolean;
  decidedAt?: string;
  decidedBy?: string;
  reason?: string;
  resolved?: { at: string; by?: string; reason?: string };
}

export interface Approval extends Card {
  id: string;
  chatId: string;
  owner: string;
  input: Record<string, unknown>;
  argumentsHash: string;
  inputSchema?: Schema;
}

/** As much of JSON Schema as the edit form draws; the server checks the rest. */
export interface Schema {
  type?: string;
  title?: string;
  description?: string;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  required?: string[];
}

export interface Verdict {
  approved: boolean;
  reason?: string;
  input?: Record<string, unknown>;
  remember?: boolean;
  argumentsHash?: string;
}

/** What the server refused, in its own words. */
export class Refusal extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string | undefined,
    readonly errorId: string | undefined,
  ) {
    super(message);
  }
}

/** The server could not be reached. */
export class Unreachable extends Error {}

// One that hangs must not stop the page from asking again.
const PATIENCE = 20_000;

async function call(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { signal: AbortSignal.timeout(PATIENCE), ...init });
  } catch {
    throw new Unreachable('The server does not answer.');
  }
  if (response.ok) return response;
  throw await refusalOf(response);
}

/** Is `fetch` for transports, which keep nothing of a refusal but its text. */
export const fetchReply: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  if (response.ok) return response;
  throw await refusalOf(response);
};

/** Reads what a response that is not ok means: its code and id are in headers, on every route. */
export async function refusalOf(response: Response): Promise<Refusal | Unreachable> {
  const { status, headers } = response;
  // A proxy answers for a server that is not there.
  if ([502, 503, 504].includes(status)) return new Unreachable('The server does not answer.');
  const code = headers.get('x-adk-stream-error');
  if (code === null) return new Refusal(`The server answered ${status}.`, status, undefined, undefined);
  const text = messageOf(await response.text());
  const id = headers.get('x-adk-stream-error-id') ?? undefined;
  // Where the server is to blame, its message names the id itself.
  return new Refusal(text, status, code, id !== undefined && text.includes(id) ? undefined : id);
}

/** Reads the body of an error: chat routes send the message alone, the others JSON. */
function messageOf(body: string): string {
  try {
    return (JSON.parse(body) as { error: { message: string } }).error.message;
  } catch {
    return body;
  }
}

const chatPath = (id: string): string => `api/chats/${encodeURIComponent(id)}`;
const approvalPath = (id: string): string => `api/approvals/${encodeURIComponent(id)}`;
const json = async <T>(response: Promise<Response>): Promise<T> => (await response).json() as Promise<T>;
const posted = (body: unknown): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

/** Returns the first pages of the list, newest first, and whether there are more. */
export async function chats(pages: number, archived: boolean): Promise<{ chats: ChatInfo[]; hasMore: boolean }> {
  const found: ChatInfo[] = [];
  let next: string | undefined;
  do {
    const query = new URLSearchParams({
      ...(archived && { archived: 'true' }),
      ...(next !== undefined && { cursor: next }),
    });
    const path = query.size > 0 ? `api/chats?${query}` : 'api/chats';
    const page = await json<{ chats: ChatInfo[]; nextCursor?: string }>(call(path));
    found.push(...page.chats);
    next = page.nextCursor;
    pages -= 1;
  } while (next !== undefined && pages > 0);
  return { chats: found, hasMore: next !== undefined };
}

/** Returns a chat as the server has it; null: nothing was said in it yet. */
export async function chat(id: string, profile: Profile): Promise<ChatRecord | null> {
  try {
    return await json<ChatRecord>(call(`${chatPath(id)}?profile=${profile}`));
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) return null;
    throw error;
  }
}

export const changeChat = (id: string, change: ChatChange): Promise<ChatInfo> =>
  json<ChatInfo>(call(chatPath(id), { ...posted(change), method: 'PATCH' }));

export const deleteChat = async (id: string): Promise<void> => {
  await call(chatPath(id), { method: 'DELETE' });
};

export const artifactPath = (id: string, filename: string, version: number): string =>
  `${chatPath(id)}/artifacts/${filename.split('/').map(encodeURIComponent).join('/')}?version=${version}`;

export const pendingApprovals = async (): Promise<Approval[]> =>
  (await json<{ approvals: Approval[] }>(call('api/approvals?status=pending'))).approvals;

export const approval = (id: string): Promise<Approval> => json<Approval>(call(approvalPath(id)));

/** Decides; returns the approval as it now is, also if somebody else was quicker. */
export async function decide(id: string, verdict: Verdict, decisionId: string): Promise<Approval> {
  const response = await fetch(approvalPath(id), posted({ ...verdict, decisionId })).catch(() => {
    throw new Unreachable('The server does not answer.');
  });
  if (response.ok) return response.json() as Promise<Approval>;
  const told = response.status === 409 ? ((await response.clone().json()) as Partial<Approval>) : {};
  if (told.status !== undefined) return told as Approval;
  throw await refusalOf(response);
}

export const stop = async (id: string, profile: Profile): Promise<void> => {
  const path = profile === 'adk' ? 'stream' : 'api/chat';
  await call(`${path}/${encodeURIComponent(id)}/stop`, posted({}));
};
