/**
 * The messages of data calls that protobuf-es reads and writes: filters, the rarer mutations and rules, statistics.
 * Imported by request-decoder.ts alone, dynamically.
 */
import { create } from '@bufbuild/protobuf';
import { BigtableError } from '../../base/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import type { Mutation, ReadModifyWriteRule } from '../../model/index.ts';
import { filterOf } from '../convert/filter.ts';
import { mutationOf, ruleOf } from '../convert/mutation.ts';
import { ReadRowsResponseSchema } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { MutationSchema, ReadModifyWriteRuleSchema, RowFilterSchema } from '../generated/google/bigtable/v2/data_pb.ts';
import { decodeRequest, encode } from './messages.ts';

export type GeneratedCodec = typeof GENERATED_CODEC;

export const GENERATED_CODEC = {
  /** RowFilter; undefined where it is empty. */
  filter(bytes: Uint8Array): RowFilter | undefined {
    return filterOf(decodeRequest(RowFilterSchema, bytes));
  },

  /**
   * Mutation, of any kind. Valid protobuf that names nothing to do is returned as an error: in a batch it fails its
   * own entry only.
   */
  mutation(bytes: Uint8Array): { readonly mutation: Mutation | BigtableError; readonly timestampOrigin: number } {
    const message = decodeRequest(MutationSchema, bytes);
    try {
      return { mutation: mutationOf(message), timestampOrigin: message.timestampOrigin };
    } catch (error) {
      if (!(error instanceof BigtableError)) throw error;
      return { mutation: error, timestampOrigin: message.timestampOrigin };
    }
  },

  /** ReadModifyWriteRule. */
  rule(bytes: Uint8Array): ReadModifyWriteRule {
    return ruleOf(decodeRequest(ReadModifyWriteRuleSchema, bytes));
  },

  /** ReadRowsResponse with statistics. The service does not count what it passed over: seen is what was returned. */
  readStatistics(rows: number, cells: number, latencyMs: number): Buffer {
    const readIterationStats = {
      rowsSeenCount: BigInt(rows),
      rowsReturnedCount: BigInt(rows),
      cellsSeenCount: BigInt(cells),
      cellsReturnedCount: BigInt(cells),
    };
    const frontendServerLatency = {
      seconds: BigInt(Math.floor(latencyMs / 1000)),
      nanos: Math.floor((latencyMs % 1000) * 1e6),
    };
    const value = { readIterationStats, requestLatencyStats: { frontendServerLatency } };
    return encode(
      ReadRowsResponseSchema,
      create(ReadRowsResponseSchema, { requestStats: { statsView: { case: 'fullReadStatsView', value } } }),
    );
  },
};
