/**
 * What the Cloud API's client side needs of a wire: calls by path with raw bytes. The adapter is grpc-js-client.ts.
 */
import type { RequestContext } from '../../env/index.ts';

export interface RpcClient {
  /** One answer. Fails with the BigtableError that the server's status says; UNAVAILABLE where nobody can be reached. */
  unary(path: string, request: Uint8Array, context: RequestContext): Promise<Buffer>;
  /** Many answers. Ending the iteration cancels the call; a slow reader slows the server down. */
  stream(path: string, request: Uint8Array, context: RequestContext): AsyncIterable<Buffer>;
  close(): void;
}
