// The real WebSocket, watched: it notes on a `Wire` what the chat sends and gets, as if over HTTP.
// In the frames of ai 7, or in envelopes.

import { once } from 'node:events';

import WebSocket from 'ws';

const EVENTS = { start: 200, chunk: 200, end: 200, 'no-active': 204, error: 400 };

/**
 * Returns `{Socket, cut, write}`: the class for `WebSocketChatTransport`'s `webSocket`; what cuts the
 * connection, as a lost network does, and resolves when it is closed (undefined: there is none); and what
 * writes a frame that the transport would not.
 */
export function watchedSocket(wire) {
  const exchanges = new Map(); // by requestId
  return watched(
    text => {
      const frame = JSON.parse(text);
      wire.frames.push(frame);
      const exchange = exchanges.get(frame.requestId);
      if (!exchange) return;
      if (exchange.status === null || frame.type === 'error') {
        exchange.status = EVENTS[frame.type];
      }
      if (frame.type === 'chunk') exchange.chunks.push(frame.chunk);
    },
    ({ type, requestId, ...body }) => {
      if (type === 'send') exchanges.set(requestId, wire.post(body));
      if (type === 'resume') exchanges.set(requestId, wire.resume());
    },
  );
}

/** The same for envelopes, which do not say what they answer: chunks are noted with the newest message. */
export function watchedEnvelopes(wire) {
  return watched(
    text => {
      const body = text.replace(/^data: /, '').trim();
      const frame = body === '[DONE]' ? { type: body } : JSON.parse(body);
      wire.frames.push(frame);
      if (!wire.latest || !text.startsWith('data: ')) return;
      wire.latest.status = 200;
      if (body !== '[DONE]') wire.latest.chunks.push(frame);
    },
    ({ type, data }) => {
      if (type === 'message') wire.post(data);
    },
  );
}

function watched(hear, say) {
  let current; // the newest socket

  class Socket extends WebSocket {
    constructor(url, protocols) {
      super(url, protocols);
      current = this;
      this.on('message', (data, isBinary) => {
        if (isBinary) throw new Error('a binary frame');
        hear(String(data));
      });
    }

    send(text) {
      say(JSON.parse(text));
      super.send(text);
    }
  }

  return {
    Socket,
    cut: () => {
      if (!current || current.readyState === WebSocket.CLOSED) return undefined;
      const isClosed = once(current, 'close');
      current.terminate();
      return isClosed;
    },
    write: text => WebSocket.prototype.send.call(current, text),
  };
}
