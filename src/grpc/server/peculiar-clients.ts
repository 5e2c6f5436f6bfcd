/** What Google's clients cannot do, learnt from them (docs/decisions/0006-grpc-codec.md), and how they are told from others. */
import type { RowsGo } from '../codec/chunk-writer.ts';
import type { RpcCall } from '../../wire/index.ts';

/** A client sends the same headers with every call, and clients are of few kinds. */
let last:
  | { readonly client: string; readonly agent: string; readonly hasPrefix: boolean; readonly rowsGo: RowsGo }
  | undefined;

/**
 * What the caller's client can follow (docs/decisions/0006-grpc-codec.md). Google's Go client names itself by its gRPC library and the
 * resource prefix that Google's clients send, not always by x-goog-api-client; plain gRPC stubs send neither.
 */
export function rowsGoTo(call: Pick<RpcCall, 'header'>): RowsGo {
  const client = call.header('x-goog-api-client') ?? '';
  const agent = call.header('user-agent') ?? '';
  const hasPrefix = call.header('google-cloud-resource-prefix') !== undefined;
  if (last?.client !== client || last.agent !== agent || last.hasPrefix !== hasPrefix)
    last = { client, agent, hasPrefix, rowsGo: rowsGo(client, agent, hasPrefix) };
  return last.rowsGo;
}

function rowsGo(client: string, agent: string, hasPrefix: boolean): RowsGo {
  if (/\bgl-python\//.test(client)) return 'keyed';
  const isGo = /\bgrpc-go\//.test(agent) && hasPrefix;
  return isGo || /\bgl-go\//.test(client) ? 'whole' : 'parted';
}
