import type { ToolResult } from './envelopeTransport.js';

/** A socket that takes answers while a reply is open; `EnvelopeChatTransport` is one. */
export interface AnswerSocket {
  sendToolResult(result: ToolResult): Promise<void> | void;
  /** Whether the answer belongs here now; without it, always. */
  canAnswer?(chatId: string, toolCallId: string): boolean;
  /** Resolves to whether the browser may run a call; undefined if the socket does not know of it. */
  mayRun?(chatId: string, toolCallId: string): Promise<boolean> | undefined;
}

/** What came of a call, as `addToolOutput` of ai 6 and ai 7 takes it. */
export type CallOutput = { tool: string; toolCallId: string } & (
  | { state?: 'output-available'; output: unknown; errorText?: never }
  | { state: 'output-error'; output?: never; errorText: string }
);

/**
 * How answers get to the server: the functions of a chat, and the socket if it has one that takes them.
 *
 * `{ chatId: chat.id, ...chat, websocket }` is one, where `chat` is what `useChat` returns.
 */
export interface AnswerTransport {
  /** The chat. Needed for a socket. */
  chatId?: string | undefined;
  /** Preferred while the call's reply is open on it. */
  websocket?: AnswerSocket | undefined;
  addToolOutput?(output: CallOutput): void | PromiseLike<void>;
  addToolApprovalResponse?(response: {
    id: string;
    approved: boolean;
    reason?: string;
  }): void | PromiseLike<void>;
}

/** The socket of a transport, if an answer to the call belongs there. */
export function socketFor(
  { websocket, chatId = '', addToolOutput }: AnswerTransport,
  toolCallId: string,
): AnswerSocket | undefined {
  if (websocket === undefined) return undefined;
  // Without the functions of a chat there is no other way.
  const isUsable =
    addToolOutput === undefined || websocket.canAnswer?.(chatId, toolCallId) !== false;
  return isUsable ? websocket : undefined;
}
