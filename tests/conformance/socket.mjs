// The real WebSocket, watched: it notes on a `Wire` what the chat sends and gets, as if over HTTP.

import WebSocket from 'ws';

const EVENTS = { start: 200, chunk: 200, end: 200, 'no-active': 204, error: 400 };

/**
 * Returns `{Socket, cut, write}`: the class for `WebSocketChatTransport`'s `webSocket`; what cuts the
 * connection, as a lost network does; and what writes a frame that the transport would not.
 */
export function watchedSocket(wire) {
  const exchanges = new Map(); // by requestId
  let current; // the newest socket

  class Socket extends WebSocket {
    constructor(url, protocols) {
      super(url, protocols);
      current = this;
      this.on('message', (data, isBinary) => {
        if (isBinary) throw new Error('a binary frame');
        const frame = JSON.parse(data);
        wire.frames.push(frame);
        const exchange = exchanges.get(frame.requestId);
        if (!exchange) return;
        if (exchange.status === null || frame.type === 'error') {
          exchange.status = EVENTS[frame.type];
        }
        if (frame.type === 'chunk') exchange.chunks.push(frame.chunk);
      });
    }

    send(text) {
      const { type, requestId, ...body } = JSON.parse(text);
      if (type === 'send') exchanges.set(requestId, wire.post(body));
      if (type === 'resume') exchanges.set(requestId, wire.resume());
      super.send(text);
    }
  }

  return {
    Socket,
    cut: () => current.terminate(),
    write: text => WebSocket.prototype.send.call(current, text),
  };
}
