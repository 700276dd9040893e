// The frames of `WebSocketChatTransport` of ai 7, which docs/reference/websocket.md describes.

import type { UIMessage, UIMessageChunk } from 'ai';

export type Trigger = 'submit-message' | 'regenerate-message';

/** What both requests carry for servers that read it; that of adk-stream-protocol does not. */
interface Extras {
  headers: Record<string, string>;
  body: object;
  metadata: unknown;
}

export interface SendFrame<Message extends UIMessage> extends Extras {
  type: 'send';
  requestId: string;
  id: string;
  messages: Message[];
  trigger: Trigger;
  messageId: string | undefined;
}

export interface ResumeFrame extends Extras {
  type: 'resume';
  requestId: string;
  id: string;
}

export interface AbortFrame {
  type: 'abort';
  requestId: string;
  /** The reply is not stopped: only nobody listens any more. */
  leave?: true;
}

/** What a request is answered with. */
export type ReplyFrame =
  | { type: 'start' | 'end' | 'no-active'; requestId: string }
  | { type: 'chunk'; requestId: string; sequence: number; chunk: UIMessageChunk }
  | { type: 'error'; requestId: string; errorText: string | undefined }
  | { type: 'malformed'; requestId: string };

/** A hint: a turn that this page did not ask for began in a chat. */
export interface ActiveFrame {
  type: 'active';
  requestId: string;
  id: string;
}

/** Returns the frame in a message, or undefined if nothing says whose it is. */
export function readFrame(data: unknown): ReplyFrame | ActiveFrame | undefined {
  const frame = parsed(data);
  if (!isRecord(frame) || typeof frame.requestId !== 'string') return undefined;
  const { type, requestId, sequence, chunk, errorText, id } = frame;
  switch (type) {
    case 'start':
    case 'end':
    case 'no-active':
      return { type, requestId };
    case 'chunk':
      if (typeof sequence === 'number' && isChunk(chunk))
        return { type, requestId, sequence, chunk };
      break;
    case 'error':
      if (errorText === undefined || typeof errorText === 'string')
        return { type, requestId, errorText };
      break;
    case 'active':
      if (typeof id === 'string') return { type, requestId, id };
      break;
  }
  return { type: 'malformed', requestId };
}

function parsed(data: unknown): unknown {
  if (typeof data !== 'string') return undefined;
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

// No more is checked: the chat ignores a type that it does not know, and fails one that does not fit.
function isChunk(value: unknown): value is UIMessageChunk {
  return isRecord(value) && typeof value.type === 'string';
}
