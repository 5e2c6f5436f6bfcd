/**
 * The calls of sessions (google/bigtable/v2/session.proto), which Google's newest clients know and call internal: one
 * stream carries many reads and writes of rows. Edubba offers none, and tells clients so in the way that they know:
 * no request shall go over a session, and the configuration need not be requested again.
 */
import { BigtableError, Code } from '../../base/index.ts';
import { decodeRequest } from '../codec/messages.ts';
import { Bigtable } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { idsOf, INSTANCE } from '../convert/names.ts';
import type { MethodTable } from './method-table.ts';

const OPENING = [
  Bigtable.method.openTable,
  Bigtable.method.openAuthorizedView,
  Bigtable.method.openMaterializedView,
] as const;

export function registerSessionCalls(methods: MethodTable): void {
  methods.unary(Bigtable.method.getClientConfiguration, async (_context, { instanceName }) => {
    idsOf(instanceName, INSTANCE, 'instance_name');
    return { sessionConfiguration: { sessionLoad: 0 }, polling: { case: 'stopPolling' as const, value: true } };
  });
  for (const method of OPENING)
    methods.raw(method, {
      kind: 'bidi',
      handle: async (_call, requests) => {
        for await (const bytes of requests) {
          decodeRequest(method.input, bytes);
          break;
        }
        throw new BigtableError(
          Code.FAILED_PRECONDITION,
          `${method.name}: Edubba has no sessions, as GetClientConfiguration says: use ReadRows, MutateRow and the like`,
        );
      },
    });
}
