/**
 * The calls on single rows at one server, without a search: for a call that another server has passed on to this one
 * (docs/decisions/0047-calls-passed-on-as-bytes.md).
 *
 * Invariant: no call goes to another tablet server, nor again to this one. A row that the server does not have is "not
 * serving", and the server that passed the call on searches.
 */
import { assert, type ByteString } from '../base/index.ts';
import type { Clock, RequestContext, Transport } from '../env/index.ts';
import type { SchemaCache } from '../locator/index.ts';
import { ALL_ROWS, type Cell, type Limits, type ReadBatch, type ReadModifyWriteRule } from '../model/index.ts';
import type { RowMutations, TableSchema } from '../model/index.ts';
import { notServing, readTablet } from '../protocol/index.ts';
import { type CheckAndMutateRequest, checkReadRows, type ReadRequest, type RowService } from '../service/index.ts';
import { orderedRanges } from './row-ranges.ts';
import { type RowRouter, RowWrites } from './row-writes.ts';

export interface ServerRowsParts {
  readonly address: string;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly schemas: SchemaCache;
  readonly getTable: RowService['getTable'];
}

export class ServerRows implements RowService, RowRouter {
  readonly #parts: ServerRowsParts;
  readonly #writes: RowWrites;

  constructor(parts: ServerRowsParts) {
    this.#parts = parts;
    this.#writes = new RowWrites({ ...parts, router: this });
  }

  callRow<T>(
    table: string,
    row: ByteString,
    _context: RequestContext,
    call: (tableId: string, address: string) => Promise<T>,
  ): Promise<T> {
    return call(this.#tableId(table, row), this.#parts.address);
  }

  schemaVersion(tableId: string): number | undefined {
    return this.#parts.schemas.versionOf(tableId);
  }

  mutateRow(context: RequestContext, table: string, entry: RowMutations): Promise<void> {
    return this.#writes.mutateRow(context, table, entry);
  }

  checkAndMutateRow(context: RequestContext, request: CheckAndMutateRequest): Promise<boolean> {
    return this.#writes.checkAndMutateRow(context, request);
  }

  readModifyWriteRow(
    context: RequestContext,
    table: string,
    row: ByteString,
    rules: readonly ReadModifyWriteRule[],
    maxAnswerBytes?: number,
  ): Promise<readonly Cell[]> {
    return this.#writes.readModifyWriteRow(context, table, row, rules, maxAnswerBytes);
  }

  /** A read of few ranges, inside one tablet. */
  readRows(context: RequestContext, request: ReadRequest): AsyncIterable<ReadBatch> {
    const { transport, clock, limits, address } = this.#parts;
    checkReadRows(request, limits);
    const { table, filter, rowsLimit = 0, reversed = false } = request;
    const ranges = orderedRanges(request.ranges?.length ? request.ranges : [ALL_ROWS], limits, clock, context);
    assert(!(ranges instanceof Promise), 'a read that is passed on is put in order without a wait');
    const [first] = ranges;
    assert(first !== undefined, 'a read that is passed on has a range that is not empty');
    const tableId = this.#tableId(table, first.start);
    const message = { tableId, ranges, filter, rowsLimit, reversed, schemaVersion: this.schemaVersion(tableId) };
    return readTablet(transport, address, message, context);
  }

  getTable(context: RequestContext, name: string): Promise<TableSchema> {
    return this.#parts.getTable(context, name);
  }

  /** A table that is not known here, or not yet, is not served here. */
  #tableId(table: string, row: ByteString): string {
    const schema = this.#parts.schemas.byName(table);
    if (schema === undefined) throw notServing(table, row);
    return schema.id;
  }
}
