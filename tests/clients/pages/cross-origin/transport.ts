import { DefaultChatTransport } from 'ai';

/** Reaches a server on another origin, as somebody who has a token. */
export const transportTo = (server: string, getToken: () => string) =>
  new DefaultChatTransport({
    api: `${server}/api/chat?sdk=7`,
    // A function: it is asked before each request, when the token may be another one.
    headers: () => ({ authorization: `Bearer ${getToken()}` }),
  });
