// The real chats of ai 6 and ai 7 without React: the state of `@ai-sdk/react`, and nothing of ours.

import * as ai6 from 'ai';
import * as ai7 from 'ai7';

export const VERSIONS = { ai6, ai7 } as unknown as Record<string, typeof ai6>;

const copied = (message: any) => ({
  ...message,
  parts: message.parts.map((part: any) => ({ ...part })),
});

class MemoryState {
  error = undefined;
  snapshot = copied;
  #status = 'ready';
  #messages: any[];
  #onChange: () => void;

  constructor(messages: any[], onChange: () => void) {
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
  get messages() {
    return this.#messages;
  }
  set messages(messages) {
    this.#messages = [...messages];
    this.#onChange();
  }
  pushMessage = (message: any) => {
    this.messages = [...this.#messages, message];
  };
  popMessage = () => {
    this.messages = this.#messages.slice(0, -1);
  };
  replaceMessage = (index: number, message: any) => {
    this.messages = this.#messages.map((each, at) => (at === index ? copied(message) : each));
  };
}

/** Makes a chat of a version; `onChange` is called where a page would render. */
export function createChat(
  version: string,
  { messages = [], onChange = () => {}, ...init }: any,
): ai6.AbstractChat<ai6.UIMessage> {
  const Chat = VERSIONS[version]!.AbstractChat as any;
  return new (class extends Chat {})({
    id: 'c1',
    ...init,
    state: new MemoryState(messages, onChange),
  });
}

/** The last message's tool parts. */
export const toolParts = (chat: ai6.AbstractChat<ai6.UIMessage>): any[] =>
  (chat.messages.at(-1)?.parts ?? []).filter(part => 'toolCallId' in part);

export const lastText = (chat: ai6.AbstractChat<ai6.UIMessage>): string =>
  (chat.messages.at(-1)?.parts ?? []).map(part => (part.type === 'text' ? part.text : '')).join('');
