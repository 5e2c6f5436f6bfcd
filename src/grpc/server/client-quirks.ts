/**
 * The restrictions of Google's clients, learnt from them (docs/decisions/0006-grpc-codec.md), and the headers by which
 * they are recognised.
 */
import type { RowFraming } from '../codec/chunk-writer.ts';
import type { RpcCall } from '../../wire/index.ts';

/**
 * One for each API. Remembers the last caller's headers: a client sends the same ones with every call, and clients are
 * of few kinds.
 */
export class ClientQuirks {
  #client: string | undefined;
  #agent = '';
  #hasPrefix = false;
  #framing: RowFraming = 'parted';

  /** The framing of rows that the caller's client can follow. */
  rowFraming(call: Pick<RpcCall, 'header'>): RowFraming {
    const client = call.header('x-goog-api-client') ?? '';
    const agent = call.header('user-agent') ?? '';
    const hasPrefix = call.header('google-cloud-resource-prefix') !== undefined;
    if (this.#client !== client || this.#agent !== agent || this.#hasPrefix !== hasPrefix) {
      this.#client = client;
      this.#agent = agent;
      this.#hasPrefix = hasPrefix;
      this.#framing = rowFraming(client, agent, hasPrefix);
    }
    return this.#framing;
  }
}

/**
 * Google's Go client names itself by its gRPC library and the resource prefix that Google's clients send, not always by
 * x-goog-api-client; plain gRPC stubs send neither.
 */
function rowFraming(client: string, agent: string, hasPrefix: boolean): RowFraming {
  if (/\bgl-python\//.test(client)) return 'keyed';
  const isGo = /\bgrpc-go\//.test(agent) && hasPrefix;
  return isGo || /\bgl-go\//.test(client) ? 'whole' : 'parted';
}
