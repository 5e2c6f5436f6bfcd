/**
 * wire: HTTP/2 and gRPC over node:net and node:tls, as wide as gRPC needs and no wider. `http2` is the protocol and its
 * limits, `hpack` its headers' compression, `grpc` the messages and headers of calls, `server` calls as their handlers
 * see them, `client` calls as their callers do.
 */
export { lendMessage, lendOnward, MESSAGE_BUFFER_BYTES, takeMessageBuffer } from './http2/message-buffers.ts';
export { type Address, addressText, isLoopback, parseAddress } from './contract/address.ts';
export { type ClientTlsOptions, WireClient } from './client/wire-client.ts';
export type { RpcClient } from './contract/rpc-client.ts';
export {
  type Authenticate,
  type ApiEnv,
  type EndedCall,
  type OnCall,
  type RpcCall,
  type RpcMethod,
  type RpcServer,
  type RpcSink,
  type RpcStatus,
  TINY_REQUEST_BYTES,
} from './contract/rpc-server.ts';
export type { TlsOptions } from './server/tls.ts';
export { type WireLimits, WireServer } from './server/wire-server.ts';
