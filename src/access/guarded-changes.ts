/**
 * Change streams, for callers who may read every family of the table: a change of other families shows rows that the
 * caller may not know of.
 */
import type { RequestContext } from '../env/index.ts';
import type { RowRange } from '../model/index.ts';
import type { ChangeService, ChangeStreamRequest, StreamEvent } from '../service/index.ts';
import type { Gate } from './gate.ts';

export class GuardedChanges implements ChangeService {
  readonly #changes: ChangeService;
  readonly #gate: Gate;

  constructor(changes: ChangeService, gate: Gate) {
    this.#changes = changes;
    this.#gate = gate;
  }

  async changeStreamRanges(context: RequestContext, table: string): Promise<readonly RowRange[]> {
    this.#check(context, 'GenerateInitialChangeStreamPartitions', table);
    return this.#changes.changeStreamRanges(context, table);
  }

  /** The right is checked again with each event: one that is revoked ends the stream. */
  async *readChanges(context: RequestContext, request: ChangeStreamRequest): AsyncGenerator<StreamEvent, void> {
    this.#check(context, 'ReadChangeStream', request.table);
    for await (const event of this.#changes.readChanges(context, request)) {
      this.#check(context, 'ReadChangeStream', request.table);
      yield event;
    }
  }

  #check(context: RequestContext, call: string, table: string): void {
    if (!this.#gate.rights.readsAll(context.principal, table))
      this.#gate.refuse(context, call, 'bigtable.tables.readRows', table);
  }
}
