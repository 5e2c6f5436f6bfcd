/**
 * The contract of an API and its wire on the client's side: calls by path, raw bytes out and in. The adapter is
 * client/wire-client.ts.
 */
import type { BigtableError } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';

export interface RpcClient {
  /**
   * One answer. Fails with the BigtableError that the server's status says; UNAVAILABLE where no server can be reached,
   * with the detail `notReached` where the request surely was not worked on. `headers`: in addition to those of all
   * calls; name, value, name, value …, names in lower case, values in printable ASCII.
   */
  unary(path: string, request: Uint8Array, context: RequestContext, headers?: readonly string[]): Promise<Buffer>;
  /**
   * Many answers. The call begins when the first is requested; ending the iteration cancels it; a slow reader slows the
   * server down. `staysOpen`: the request has no end, for methods whose server may end with it. Default: false.
   */
  stream(
    path: string,
    request: Uint8Array,
    context: RequestContext,
    headers?: readonly string[],
    staysOpen?: boolean,
  ): AsyncIterable<Buffer>;
  /** Takes no new calls; the connection ends with those under way. */
  close(): void;
  /** Takes no new calls, and ends those under way with that error. */
  destroy(error: BigtableError): void;
}
