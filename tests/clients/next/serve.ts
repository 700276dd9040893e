/**
 * Serves the pages and the routes as Next.js would: the handlers get a `Request` and give a `Response`.
 * Writes the addresses of the three set-ups as one line of JSON.
 */
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import { loadMessages } from './database';
import * as forward from './forward';
import * as merge from './merge';
import * as persist from './persist';

type Handler = (request: Request) => Promise<Response>;

const KINDS: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript' };

async function page({ pathname }: URL): Promise<Response> {
  const path = pathname.endsWith('/') ? `${pathname}index.html` : pathname;
  const body = await readFile(join('dist', path.replace('/clients/', '/')));
  return new Response(body, { headers: { 'content-type': KINDS[extname(path)] ?? 'text/css' } });
}

async function stored({ pathname }: URL): Promise<Response> {
  const id = pathname.split('/').at(-1)!;
  return Response.json({ id, messages: await loadMessages(id), activeStreamId: null });
}

const SETUPS: Record<string, { POST: Handler; chat?: (url: URL) => Promise<Response> }> = {
  forward,
  merge,
  persist: { POST: persist.POST, chat: stored },
};

async function answer(name: string, request: Request): Promise<Response> {
  const url = new URL(request.url);
  const setup = SETUPS[name]!;
  if (!url.pathname.startsWith('/api/')) return page(url);
  if (url.pathname === '/api/chat') return setup.POST(request);
  if (url.pathname.startsWith('/api/chats/') && setup.chat) return setup.chat(url);
  return forward.GET(request);
}

async function serve(name: string, incoming: IncomingMessage, outgoing: ServerResponse) {
  const hangUp = new AbortController();
  outgoing.on('close', () => hangUp.abort());
  const request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
    method: incoming.method,
    headers: incoming.headers as Record<string, string>,
    body: incoming.method === 'GET' ? undefined : (Readable.toWeb(incoming) as BodyInit),
    signal: hangUp.signal,
    duplex: 'half',
  } as RequestInit);
  const response = await answer(name, request);
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.flushHeaders();
  if (response.body) await pipeline(Readable.fromWeb(response.body as never), outgoing);
  else outgoing.end();
}

const urls: Record<string, string> = {};
for (const name of Object.keys(SETUPS)) {
  const server = createServer((incoming, outgoing) => {
    // A page that went away is no reason to end.
    serve(name, incoming, outgoing).catch(error => outgoing.destroy(error));
  });
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening));
  urls[name] = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
console.log(JSON.stringify(urls));
