// What applications send instead of all their messages, by `prepareSendMessagesRequest`.

const last = messages => messages.at(-1);
const parentOf = messages => messages.at(-2)?.id ?? null;

/** Over HTTP what is returned is the whole body. */
const BODIES = {
  // The AI SDK's documentation, for servers that keep the history.
  documented: ({ id, messages }) => ({ id, message: last(messages) }),
  // The same as a list, copied without the trigger.
  untriggered: ({ id, messages }) => ({ id, messages: messages.slice(-1) }),
  // All that there is to say.
  last: ({ id, messages, trigger, messageId }) => ({
    id,
    messages: messages.slice(-1),
    trigger,
    messageId,
  }),
  // The AI SDK's Next.js example: a regenerate only names its message.
  naming: ({ id, messages, trigger, messageId }) =>
    trigger === 'regenerate-message'
      ? { id, trigger, messageId }
      : { id, trigger, messageId, message: last(messages) },
  // A client whose messages are a tree, as those of assistant-ui.
  branching: ({ id, messages, trigger, messageId }) => ({
    id,
    messages: messages.slice(-1),
    trigger,
    messageId,
    parentId: parentOf(messages),
  }),
};

/** A socket's frame always has its trigger; what is returned replaces messages and body. */
const FRAMES = {
  documented: ({ id, messages }) => ({ body: { id, message: last(messages) } }),
  last: ({ messages }) => ({ messages: messages.slice(-1) }),
  branching: ({ messages }) => ({
    messages: messages.slice(-1),
    body: { parentId: parentOf(messages) },
  }),
};

/** The option of a transport; undefined: everything is sent. */
export function preparation(name, { socket }) {
  if (name === 'all') return undefined;
  const prepare = (socket ? FRAMES : BODIES)[name];
  if (!prepare) throw new Error(`unknown --prepare ${name}`);
  return socket ? prepare : options => ({ body: prepare(options) });
}
