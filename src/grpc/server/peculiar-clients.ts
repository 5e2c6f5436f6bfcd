/** What Google's clients cannot do, learnt from them (docs/decisions/0006-grpc-codec.md), and how they are told from others. */
import type { RowsGo } from '../codec/chunk-writer.ts';
import type { RpcCall } from '../../wire/index.ts';

/**
 * What the caller's client can follow (docs/decisions/0006-grpc-codec.md). Google's Go client names itself by its gRPC library and the
 * resource prefix that Google's clients send, not always by x-goog-api-client; plain gRPC stubs send neither.
 */
export function rowsGoTo(call: Pick<RpcCall, 'header'>): RowsGo {
  const client = call.header('x-goog-api-client') ?? '';
  if (/\bgl-python\//.test(client)) return 'keyed';
  const isGo = /\bgrpc-go\//.test(call.header('user-agent') ?? '') && call.header('google-cloud-resource-prefix') !== undefined;
  return isGo || /\bgl-go\//.test(client) ? 'whole' : 'parted';
}
