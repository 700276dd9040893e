import type { SocketClass, SocketLike } from './connection.js';

export type Params =
  Record<string, string> | (() => Record<string, string> | PromiseLike<Record<string, string>>);

/** Where a socket leads and how it is made. */
export interface SocketOptions {
  /** The address of the socket, `http` or `ws`; a page may leave out its own origin. */
  url: string;
  /** Subprotocols to offer. */
  protocols?: string | string[];
  /** Added to the query of the address; a function is asked for each socket that is opened. */
  params?: Params;
  /** Where there is no WebSocket of the name, such as that of `ws` in Node 20. */
  webSocket?: SocketClass;
}

/** Opens a socket; `more` is added to its query. */
export async function openSocket(
  { url, params, protocols, webSocket: Socket = globalThis.WebSocket }: SocketOptions,
  more: Record<string, string> = {},
): Promise<SocketLike> {
  if (Socket === undefined) throw new Error('There is no WebSocket here: give one as `webSocket`.');
  const query = typeof params === 'function' ? await params() : params;
  return new Socket(socketUrl(url, { ...query, ...more }), protocols);
}

function socketUrl(url: string, query: Record<string, string>): string {
  // Only a page has a location; elsewhere a relative address is an invalid one.
  const address = new URL(url, globalThis.location?.href);
  address.protocol = address.protocol.replace(/^http/, 'ws');
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value);
  return address.href;
}
