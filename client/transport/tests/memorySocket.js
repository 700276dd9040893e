// A WebSocket without a network: a test reads what was sent and says what comes.

/** Returns `{Socket, opened}`: a class for `webSocket`, and the sockets made of it, in order. */
export function memorySockets() {
  const opened = [];

  class Socket {
    readyState = 0;
    sent = []; // the frames that the transport sent
    closedWith = undefined; // the code with which the transport closed it

    constructor(url, protocols) {
      Object.assign(this, { url, protocols });
      opened.push(this);
    }

    send(text) {
      if (this.readyState !== 1) throw new Error('not open');
      this.sent.push(JSON.parse(text));
    }

    close(code) {
      this.closedWith = code;
      this.readyState = 2;
    }

    // What the server and the network do.

    open() {
      this.readyState = 1;
      this.onopen({});
    }

    says(...frames) {
      for (const frame of frames) {
        this.onmessage({ data: typeof frame === 'string' ? frame : JSON.stringify(frame) });
      }
    }

    lose(code) {
      this.readyState = 3;
      this.onerror({});
      this.onclose({ code, reason: '' });
    }
  }

  return { Socket, opened };
}
