export type { SocketClass, SocketLike } from './connection.js';
export {
  SocketChatTransport,
  type PreparedRequest,
  type SendRequest,
  type SocketChatTransportOptions,
} from './socketTransport.js';
