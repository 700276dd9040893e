// The real `ai` packages, as read.mjs and chat.mjs use them: how a version is loaded, the state that
// `useChat` would keep for it, a chat whose requests can be awaited, and what kind of error it met.

/** npm aliases in package.json: the newest of each line, and the last that refuses unknown fields. */
export const VERSIONS = ['ai6', 'ai6strict', 'ai7', 'ai7strict'];

/** What a page of ours uses beside `ai`. */
export const ourClient = () => import('../../client/transport/dist/index.js');

// `@ai-sdk/react` copied whole messages in the days of 6.0.230 and 7.0.31; it now copies each part.
const copyWhole = value => structuredClone(value);
const copyParts = value =>
  Array.isArray(value?.parts)
    ? {
        ...value,
        parts: value.parts.map(part => ({ ...part })),
        ...('metadata' in value && { metadata: copyMetadata(value.metadata) }),
      }
    : value;
const copyMetadata = value => {
  if (Array.isArray(value)) return [...value];
  return value?.constructor === Object ? { ...value } : value;
};
const SNAPSHOT = {
  ai6: copyParts,
  ai6strict: copyWhole,
  ai7: copyParts,
  ai7early: copyParts,
  ai7strict: copyWhole,
};

/** The `ChatState` of `@ai-sdk/react`, without React: `onChange` is called where it would render. */
class MemoryState {
  #status = 'ready';
  #error = undefined;
  #messages;
  #onChange;

  constructor(version, messages, onChange) {
    this.snapshot = SNAPSHOT[version];
    this.#messages = messages;
    this.#onChange = onChange;
  }

  get status() {
    return this.#status;
  }
  set status(status) {
    this.#status = status;
    this.#onChange();
  }

  get error() {
    return this.#error;
  }
  set error(error) {
    this.#error = error;
    this.#onChange();
  }

  get messages() {
    return this.#messages;
  }
  set messages(messages) {
    this.#messages = [...messages];
    this.#onChange();
  }

  pushMessage = message => {
    this.messages = this.#messages.concat(message);
  };
  popMessage = () => {
    this.messages = this.#messages.slice(0, -1);
  };
  replaceMessage = (index, message) => {
    this.messages = this.#messages.with(index, this.snapshot(message));
  };
}

/**
 * Loads one version and returns `{sdk, createChat}`.
 *
 * `createChat({messages, onChange, onRequest, ...init})` makes the version's own `AbstractChat`.
 * `onRequest(promise)` is told of every request the chat makes, also of those it sends by itself;
 * the promise ends when the request and the automatic sends that follow it have ended.
 */
export async function load(version) {
  if (!(version in SNAPSHOT)) throw new Error(`unknown sdk ${version}`);
  const sdk = await import(version);
  // `makeRequest` is private in TypeScript only. Every request of every version goes through it.
  if (typeof sdk.AbstractChat.prototype.makeRequest !== 'function') {
    throw new Error(`${version} makes its requests in another way; sdk.mjs must learn it`);
  }

  class Chat extends sdk.AbstractChat {
    #onRequest;

    constructor({ messages = [], onChange = () => {}, onRequest = () => {}, ...init }) {
      super({ ...init, state: new MemoryState(version, messages, onChange) });
      this.#onRequest = onRequest;
    }

    makeRequest(options) {
      const request = super.makeRequest(options);
      this.#onRequest(request);
      return request;
    }
  }

  return { sdk, createChat: init => new Chat(init) };
}

/** The class that takes a version's chats over a WebSocket: its own, or ours for one that has none. */
export async function socketTransport(sdk) {
  return sdk.WebSocketChatTransport ?? (await ourClient()).SocketChatTransport;
}

/**
 * Says what an error of the chat means, or null without one:
 * `stream` the server sent an `error` chunk; `validation` a chunk is not JSON or not in the schema;
 * `protocol` the chunks are valid but do not fit together; `http` a status that is not 2xx;
 * `network` no response, or half of one.
 */
export function kindOf(error, { chunks = [], status = 200 } = {}) {
  if (error == null) return null;
  if (status == null) return 'network';
  if (['AI_TypeValidationError', 'AI_JSONParseError'].includes(error.name)) return 'validation';
  if (chunks.some(chunk => chunk?.type === 'error' && chunk.errorText === error.message)) {
    return 'stream';
  }
  if (status < 200 || status > 299) return 'http';
  if (error instanceof TypeError && /fetch|network|terminated/i.test(error.message)) {
    return 'network';
  }
  return 'protocol';
}
