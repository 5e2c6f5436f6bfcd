/**
 * A judge of tablet servers and their answers (I1, I2):
 * - A server whose session is over answers nothing that was begun after that, and acknowledges no write. A read that was
 *   begun earlier may be answered later: its layers were taken while the lease held.
 * - A lease, as its process sees it, ends before the session.
 * - A write of a row is acknowledged after a record of that row has become durable, unless it changes nothing or writes
 *   are buffered. One with a token is acknowledged after a record with its token has become durable, at any server.
 */
import { quote } from '../../src/base/index.ts';
import type { EncodedRecord } from '../../src/commitlog/index.ts';
import type { Idempotency, RowMutations } from '../../src/model/index.ts';
import type { BatchAnswer } from '../../src/protocol/index.ts';
import { effectiveMutations } from '../../src/service/index.ts';
import type { SimLockService } from './locks.ts';
import type { NotedCall } from './network.ts';
import type { SimProcess } from './process.ts';
import type { Scheduler } from './scheduler.ts';
import type { Verdicts } from './verdicts.ts';

/** What is answered from the contents of tablets. */
const OF_ROWS = new Set(['mutateRow', 'mutateRows', 'readModifyWriteRow', 'checkAndMutateRow', 'dropRows', 'read']);
/** The answer means that a change of one row was made. */
const OF_ONE_ROW = new Set(['mutateRow', 'readModifyWriteRow']);

interface OneRow {
  readonly tableId: string;
  readonly row: string;
  readonly idempotency?: Idempotency | undefined;
}

export class AnswerJudge {
  readonly #scheduler: Scheduler;
  readonly #locks: SimLockService;
  readonly #verdicts: Verdicts;
  readonly #isBuffered: boolean;
  /** By process, table and row: when a record of it became durable last. */
  readonly #durableMs = new Map<string, number>();
  /** By table and row, the tokens of durable records. */
  readonly #durableTokens = new Set<string>();

  constructor(scheduler: Scheduler, locks: SimLockService, verdicts: Verdicts, isBuffered = false) {
    this.#scheduler = scheduler;
    this.#locks = locks;
    this.#verdicts = verdicts;
    this.#isBuffered = isBuffered;
  }

  /** An append of the process with these records became durable. */
  appended(process: string, records: readonly EncodedRecord[]): void {
    for (const record of records) {
      const { tableId, body, token } = record.decode();
      if (body.kind !== 'rows') continue;
      if (token !== undefined)
        for (const { row } of body.rows)
          this.#durableTokens.add(`${tableId} ${row} ${Buffer.from(token).latin1Slice()}`);
      for (const { row } of body.rows) this.#durableMs.set(`${process} ${tableId} ${row}`, this.#scheduler.nowMs);
    }
  }

  answered({ process, method, message, begunMs }: NotedCall, answer: unknown): void {
    if (!OF_ROWS.has(method) || saysNothing(method, message, answer)) return;
    const isChange = OF_ONE_ROW.has(method);
    const endMs = this.#locks.endOfSessionMs(process);
    if (endMs !== undefined && (begunMs > endMs || isChange))
      this.#add(`${process.name} answers ${method}, and its session was over at ${endMs.toFixed(3)} ms`);
    if (!isChange || this.#isBuffered) return;
    const { tableId, row, idempotency } = message as OneRow;
    if (idempotency !== undefined && this.#durableTokens.has(`${tableId} ${row} ${idempotency.token}`)) return;
    const durableMs = this.#durableMs.get(`${process.name} ${tableId} ${row}`);
    if (durableMs === undefined || durableMs < begunMs)
      this.#add(`${process.name} acknowledges ${method} of row ${quote(row)}, which is not durable`);
  }

  outlasted(process: SimProcess): void {
    this.#add(`the session of ${process.name} is over, and its lease holds`);
  }

  #add(message: string): void {
    this.#verdicts.add('answers', message);
  }
}

/** The answer is true of any server: there was nothing to write, or nothing of it was written. */
function saysNothing(method: string, message: unknown, answer: unknown): boolean {
  if (method === 'mutateRow') return changesNothing(message as RowMutations);
  if (method !== 'mutateRows') return false;
  const { entries } = message as { readonly entries: readonly RowMutations[] };
  // the failures of a batch are its answer
  const { outcomes } = answer as BatchAnswer;
  return outcomes.every((failure, i) => failure !== undefined || changesNothing(entries[i]!));
}

function changesNothing({ mutations }: RowMutations): boolean {
  return effectiveMutations(mutations).length === 0;
}
