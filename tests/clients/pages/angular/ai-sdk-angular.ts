/**
 * Stands for `@ai-sdk/angular`, which the registry of our tests does not have: a chat whose state is
 * signals, on the class that `ai` has for this.
 */
import { signal } from '@angular/core';
import { AbstractChat, type ChatInit, type ChatState, type ChatStatus, type UIMessage } from 'ai';

class SignalState implements ChatState<UIMessage> {
  readonly #messages = signal<UIMessage[]>([]);
  readonly #status = signal<ChatStatus>('ready');
  readonly #error = signal<Error | undefined>(undefined);

  constructor(messages: UIMessage[]) {
    this.#messages.set(messages);
  }

  get messages() {
    return this.#messages();
  }

  set messages(messages: UIMessage[]) {
    this.#messages.set(messages);
  }

  get status() {
    return this.#status();
  }

  set status(status: ChatStatus) {
    this.#status.set(status);
  }

  get error() {
    return this.#error();
  }

  set error(error: Error | undefined) {
    this.#error.set(error);
  }

  pushMessage = (message: UIMessage) => this.#messages.update(all => [...all, message]);

  popMessage = () => this.#messages.update(all => all.slice(0, -1));

  // The message is changed in place while it streams: a copy makes Angular look at it again.
  replaceMessage = (index: number, message: UIMessage) =>
    this.#messages.update(all => all.with(index, { ...message, parts: [...message.parts] }));

  snapshot = <T>(value: T) => structuredClone(value);
}

export class Chat extends AbstractChat<UIMessage> {
  constructor({ messages = [], ...init }: ChatInit<UIMessage>) {
    super({ ...init, state: new SignalState(messages) });
  }
}
