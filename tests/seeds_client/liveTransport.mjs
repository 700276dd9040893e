// The seeds' way over `WS /live`: one socket for all turns, one stream for what comes between a message and
// `[DONE]`, and whatever is no event of the stream looked at for a pong and else left alone.

import { createRequire } from 'node:module';

const require = createRequire(new URL('../conformance/package.json', import.meta.url));
const { WebSocket } = require('ws');

export class LiveTransport {
  sent = []; // the frames that the page wrote
  besides = []; // the frames that are no events, pongs left out
  latencies = []; // of each pong whose timestamp is that of the last ping
  #url;
  #stand;
  #socket;
  #stream; // the controller of the stream that is open; undefined without one
  #isRequested = false; // the stream has brought a request for approval
  #pinged;

  constructor(url, stand) {
    this.#url = `${url.replace(/^http/, 'ws')}/live${stand.profile ? `?profile=${stand.profile}` : ''}`;
    this.#stand = stand;
  }

  async sendMessages(options) {
    const socket = await this.#open();
    return new ReadableStream({
      start: controller => {
        // Whatever comes from now on is of this stream.
        this.#close();
        this.#stream = controller;
        this.#isRequested = false;
        this.#write(socket, this.#stand.frame('message', this.#stand.say(options)));
      },
      // A chat cancels what it cannot read.
      cancel: () => socket.close(),
    });
  }

  async reconnectToStream() {
    return null;
  }

  /** Sends what a tool gave, or a decision, beside the stream. */
  async result(toolCallId, result) {
    this.#write(await this.#open(), this.#stand.frame('tool_result', { toolCallId, result }));
  }

  /** Sends a message beside the stream. */
  async aside(data) {
    this.#write(await this.#open(), this.#stand.frame('message', data));
  }

  async ping(timestamp = Date.now()) {
    this.#pinged = timestamp;
    this.#write(await this.#open(), { type: 'ping', version: '1.0', timestamp });
  }

  /** Holds the key down while pieces of sound are heard. */
  async talk(chunks) {
    const socket = await this.#open();
    this.#write(socket, { type: 'audio_control', version: '1.0', action: 'start' });
    const sound = { sampleRate: 16_000, channels: 1, bitDepth: 16 };
    for (const chunk of chunks) {
      this.#write(socket, this.#stand.frame('audio_chunk', { chunk, ...sound }));
    }
    this.#write(socket, { type: 'audio_control', version: '1.0', action: 'stop' });
  }

  #open() {
    this.#socket ??= new Promise((resolve, reject) => {
      const socket = new WebSocket(this.#url);
      socket.onopen = () => resolve(socket);
      socket.onerror = () => reject(new Error('the socket could not be opened'));
      socket.onmessage = ({ data }) => this.#hear(String(data));
      socket.onclose = () => {
        this.#socket = undefined;
        this.#close();
      };
    });
    return this.#socket;
  }

  #write(socket, frame) {
    this.sent.push(frame);
    socket.send(JSON.stringify(frame));
  }

  #hear(text) {
    if (!text.startsWith('data: ')) return this.#hearBeside(JSON.parse(text));
    const body = text.slice('data: '.length).trim();
    if (body === '[DONE]') return this.#close();
    const chunk = JSON.parse(body);
    this.#stream?.enqueue(chunk);
    if (!this.#stand.closesAfterRequest) return;
    if (chunk.type === 'tool-approval-request') this.#isRequested = true;
    // A chat that streams sends no answer.
    if (chunk.type === 'finish-step' && this.#isRequested) this.#close();
  }

  #hearBeside(frame) {
    if (frame.type !== 'pong') this.besides.push(frame);
    else if (frame.timestamp === this.#pinged) this.latencies.push(Date.now() - frame.timestamp);
  }

  #close() {
    this.#stream?.close();
    this.#stream = undefined;
  }
}
