// What the seeds' clients do, stand by stand: how they write frames, when a chat of theirs sends by
// itself, and how a click becomes an answer.

const CONFIRMATION = 'tool-adk_request_confirmation';

const partsOf = message => message?.parts ?? [];
const isTool = part => part.type.startsWith('tool-') && 'toolCallId' in part;
const nameOf = part => part.type.slice('tool-'.length);
const hasWords = message => partsOf(message).some(part => part.type === 'text' && part.text.trim());

/** The tools that only a page can run. */
const BROWSER_TOOLS = new Set(['change_bgm', 'get_location']);

const originalOf = part => part.input?.originalFunctionCall;

const isOpenConfirmation = part =>
  part.type === CONFIRMATION && part.state !== 'output-available' && originalOf(part) !== undefined;

/** Sends as soon as one confirmation has its output and the assistant has said nothing: naive, on purpose. */
const whenConfirmed = ({ messages }) => {
  const last = messages.at(-1);
  if (last?.role !== 'assistant' || hasWords(last)) return false;
  return partsOf(last).some(part => part.type === CONFIRMATION && part.state === 'output-available');
};

/** Sends when every approval is answered and every approved browser tool has its output; once for each state. */
const whenApproved = () => {
  const sent = new Set();
  return ({ messages }) => {
    const last = messages.at(-1);
    if (last?.role !== 'assistant') return false;
    const tools = partsOf(last).filter(isTool);
    const answered = tools.filter(({ state }) => state === 'approval-responded');
    const outputs = tools.filter(({ state }) => state === 'output-available');
    if (answered.length === 0) return outputs.length > 0 && !hasWords(last);
    const isRunning = part => part.approval.approved && BROWSER_TOOLS.has(nameOf(part));
    const isOpen = ({ state }) => state === 'approval-requested' || state === 'output-error';
    if (tools.some(isOpen) || answered.some(isRunning)) return false;
    const key = [last.id, ...answered.map(({ toolCallId }) => toolCallId).sort()].join();
    if (sent.has(key)) return false;
    sent.add(key);
    return true;
  };
};

const wrap = (type, data) => ({ type, version: '1.0', data });
const lay = (type, data) => ({ type, version: '1.0', timestamp: Date.now(), ...data });

/**
 * Each stand: `frame` writes one, `say` makes the data of a message, `question` tells whether a part asks,
 * `answer` is what a click does, `runs` tells whether the page runs a tool part now.
 */
export const STANDS = {
  wrapped: {
    profile: undefined,
    frame: wrap,
    say: ({ messages }) => ({ messages }),
    sendAutomaticallyWhen: () => whenConfirmed,
    isQuestion: isOpenConfirmation,
    closesAfterRequest: false,
    answer({ part, approved, chat, socket, draft }) {
      if (socket === undefined) {
        const output = { confirmed: approved };
        return chat.addToolOutput({ tool: nameOf(part), toolCallId: part.toolCallId, output });
      }
      if (draft) return socket.result(part.toolCallId, { confirmed: approved });
      const { id: toolCallId, name: toolName } = originalOf(part);
      const result = { approved, user_message: `User ${approved ? 'approved' : 'denied'} it` };
      const content = [{ type: 'tool-result', toolCallId, toolName, result }];
      return socket.aside({ messages: [{ id: `fr-${Date.now()}`, role: 'user', content }] });
    },
    runs: ({ part, isLive, isYes }) =>
      part.state === 'input-available' && (isLive || part.providerExecuted !== true || isYes(part)),
  },
  flat: {
    profile: undefined,
    frame: lay,
    say: ({ chatId: id, messages, trigger, messageId }) => ({ id, messages, trigger, messageId }),
    sendAutomaticallyWhen: () => undefined,
    isQuestion: isOpenConfirmation,
    closesAfterRequest: false,
    answer({ part, approved, post, socket }) {
      const { type, toolCallId } = part;
      const approval = { id: toolCallId, approved };
      const answered = { type, toolCallId, state: 'approval-responded', approval };
      const message = { role: 'user', parts: [answered] };
      return socket === undefined ? post(message) : socket.aside({ messages: [message] });
    },
    runs: ({ part, isLive, isYes }) =>
      part.state === 'input-available' && (isLive || part.providerExecuted !== true || isYes(part)),
  },
  native: {
    profile: 'ai-sdk',
    frame: lay,
    say: ({ chatId: id, messages, trigger, messageId }) => ({ id, messages, trigger, messageId }),
    sendAutomaticallyWhen: whenApproved,
    isQuestion: part => part.state === 'approval-requested',
    closesAfterRequest: true,
    answer({ part, approved, chat }) {
      return chat.addToolApprovalResponse({ id: part.approval.id, approved });
    },
    runs: ({ part }) =>
      part.state === 'approval-responded'
        ? part.approval.approved
        : part.state === 'input-available' && nameOf(part) === 'change_bgm',
  },
};

export { BROWSER_TOOLS, CONFIRMATION, isTool, nameOf, partsOf };
