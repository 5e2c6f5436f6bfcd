/** Changes of single rows: the form of the request is checked here, the call goes to the server of the row. */
import type { ByteString } from '../base/index.ts';
import { type Clock, inSlices, type RequestContext, type Transport } from '../env/index.ts';
import type { Cell, Limits, ReadModifyWriteRule, RowMutations } from '../model/index.ts';
import { callServer } from '../protocol/index.ts';
import {
  type CheckAndMutateRequest,
  checkCheckAndMutateRow,
  checkMutateRow,
  checkReadModifyWriteRow,
  type Slicer,
} from '../service/index.ts';

/** Makes a call at the server of a row. */
export interface RowRouter {
  /** The version of the schema that is known of the table. */
  schemaVersion(tableId: string): number | undefined;
  callRow<T>(
    table: string,
    row: ByteString,
    context: RequestContext,
    call: (tableId: string, address: string) => Promise<T>,
  ): Promise<T>;
}

export interface RowWritesParts {
  readonly router: RowRouter;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly limits: Limits;
}

export class RowWrites {
  readonly #parts: RowWritesParts;
  /** Large requests are checked in slices. */
  readonly #slicer: Slicer;

  constructor(parts: RowWritesParts) {
    this.#parts = parts;
    this.#slicer = (count, work) => inSlices(parts.clock, count, work);
  }

  mutateRow(context: RequestContext, table: string, entry: RowMutations): Promise<void> {
    return rejecting(() => {
      const checking = checkMutateRow(table, entry, this.#parts.limits, this.#slicer);
      return checking === undefined
        ? this.#mutateRow(context, table, entry)
        : checking.then(() => this.#mutateRow(context, table, entry));
    });
  }

  #mutateRow(context: RequestContext, table: string, { row, mutations, idempotency }: RowMutations): Promise<void> {
    const { router, transport } = this.#parts;
    return router.callRow(table, row, context, (tableId, address) => {
      const message = { tableId, row, mutations, schemaVersion: router.schemaVersion(tableId), idempotency };
      return callServer(transport, address, 'mutateRow', message, context);
    });
  }

  checkAndMutateRow(context: RequestContext, request: CheckAndMutateRequest): Promise<boolean> {
    return rejecting(() => {
      const { router, transport, limits } = this.#parts;
      checkCheckAndMutateRow(request, limits);
      const { table, row, predicate, whenTrue, whenFalse } = request;
      return router.callRow(table, row, context, (tableId, address) => {
        const schemaVersion = router.schemaVersion(tableId);
        const message = { tableId, row, predicate, whenTrue, whenFalse, schemaVersion };
        return callServer(transport, address, 'checkAndMutateRow', message, context);
      });
    });
  }

  readModifyWriteRow(
    context: RequestContext,
    table: string,
    row: ByteString,
    rules: readonly ReadModifyWriteRule[],
    maxAnswerBytes?: number,
  ): Promise<readonly Cell[]> {
    return rejecting(() => {
      const { router, transport, limits } = this.#parts;
      checkReadModifyWriteRow(table, row, rules, limits);
      return router.callRow(table, row, context, (tableId, address) => {
        const message = { tableId, row, rules, maxAnswerBytes, schemaVersion: router.schemaVersion(tableId) };
        return callServer(transport, address, 'readModifyWriteRow', message, context);
      });
    });
  }
}

/** A thrown error rejects the promise, as in an async function, which would make three more promises of it. */
function rejecting<T>(work: () => Promise<T>): Promise<T> {
  try {
    return work();
  } catch (error) {
    return Promise.reject(error);
  }
}
