export type { SocketClass, SocketLike } from './connection.js';
export {
  SocketChatTransport,
  type PreparedRequest,
  type SendRequest,
  type SocketChatTransportOptions,
} from './socketTransport.js';
export {
  EnvelopeChatTransport,
  type EnvelopeChatTransportOptions,
  type ToolResult,
} from './envelopeTransport.js';
export type { Params, SocketOptions } from './socketAddress.js';
export type { AnswerSocket, AnswerTransport, CallOutput } from './answering.js';
export { handleConfirmation, type ConfirmationResult } from './confirmation.js';
export { BrowserTools, type BrowserTool, type BrowserToolsOptions } from './browserTools.js';
export { changeBgm, getLocation, type Location, type Player } from './browserActions.js';
export { sendWhenAnswered, type SendWhenAnsweredOptions } from './sendWhenAnswered.js';
export {
  CONFIRMATION_TOOL,
  QUESTION_TOOL,
  confirmedCallOf,
  isConfirmation,
  isSettled,
  toolNameOf,
  type ToolPart,
} from './toolParts.js';
export { Recorder, type EntryPlace, type RecorderOptions } from './recorder.js';
export {
  formatRecording,
  parseRecording,
  type InEntry,
  type OutEntry,
  type Recording,
  type RecordingEntry,
  type RecordingHeader,
} from './recording.js';
export { recordingTransport } from './recordingTransport.js';
export { redact } from './redaction.js';
export { ReplayTransport, type ReplayTransportOptions } from './replayTransport.js';
export { Voice, type VoiceOptions, type VoiceState } from './voice.js';
