// Runs hooks of the real `@ai-sdk/react`, of the line that is given (6 or 7), in a document without a
// browser. Each line of stdin is one: {"hook": "completion" | "object" | "chat", "api": ..., ...}. For each
// it prints what a page would show: a line of JSON for each change of the text, and one at the end.

import { createInterface } from 'node:readline';

import { JSDOM } from 'jsdom';

const line = process.argv[2];
const { window } = new JSDOM();
const { document, navigator } = window;
for (const [name, value] of Object.entries({ window, document, navigator })) {
  Object.defineProperty(globalThis, name, { value, configurable: true });
}

// After the document: React looks for it when it is loaded.
const { createElement, useEffect, useState } = await import('react');
const { createRoot } = await import('react-dom/client');
const hooks = await import(`@ai-sdk/react${line}`);
const { jsonSchema, TextStreamChatTransport } = await import(`ai${line}`);

const print = value => console.log(JSON.stringify(value));

/**
 * Renders a hook, calls `act` with what it returned, and returns what it returns once all that
 * happened is rendered.
 */
const rendered = (use, act) =>
  new Promise((resolve, reject) => {
    const Page = () => {
      const [isOver, setOver] = useState(false);
      const result = use();
      useEffect(() => void act(result).then(() => setOver(true), reject), []);
      useEffect(() => {
        if (isOver) resolve(result);
      }, [isOver]);
      return null;
    };
    createRoot(document.createElement('main')).render(createElement(Page));
  });

let shown = '';
const show = text => {
  if (text && text !== shown) print({ text: (shown = text) });
};
const messageOf = error => error?.message ?? null;

const scenarios = {
  async completion({ api, protocol, prompt, body }) {
    let finished = null;
    const use = () => {
      const options = { api, body, onFinish: (_, text) => (finished = text) };
      const result = hooks.useCompletion({ ...options, ...(protocol && { streamProtocol: protocol }) });
      show(result.completion);
      return result;
    };
    const { completion, error } = await rendered(use, ({ complete }) => complete(prompt));
    return { text: completion, error: messageOf(error), finished };
  },

  async object({ api, input, schema, required }) {
    let finished = null;
    const isWhole = value => required.every(name => value?.[name] !== undefined);
    const validate = value =>
      isWhole(value) ? { success: true, value } : { success: false, error: new Error('not whole') };
    const use = () => {
      const result = hooks.experimental_useObject({
        api,
        schema: jsonSchema(schema, { validate }),
        onFinish: ({ object, error }) => (finished = { object, error: error?.message }),
      });
      show(result.object && JSON.stringify(result.object));
      return result;
    };
    const { object, error } = await rendered(use, ({ submit }) => submit(input));
    return { object: object ?? null, error: messageOf(error), finished };
  },

  async chat({ api, id, says = [], resume = false }) {
    const transport = new TextStreamChatTransport({ api });
    const textOf = ({ parts }) => parts.map(part => (part.type === 'text' ? part.text : '')).join('');
    const use = () => {
      const result = hooks.useChat({ id, transport });
      const last = result.messages.at(-1);
      if (last?.role === 'assistant') show(textOf(last));
      return result;
    };
    const { messages, status, error } = await rendered(use, async ({ sendMessage, resumeStream }) => {
      for (const text of says) await sendMessage({ text });
      if (resume) await resumeStream();
    });
    return { said: messages.map(message => [message.role, textOf(message)]), status, error: messageOf(error) };
  },
};

for await (const given of createInterface({ input: process.stdin })) {
  const { hook, ...asked } = JSON.parse(given);
  shown = '';
  print({ result: await scenarios[hook](asked) });
}
