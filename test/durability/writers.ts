/**
 * Many writers on one table, and a ledger of what each was told: acknowledged, refused (surely not written) or unknown.
 * Every write has a row and a value of its own; the value is a mark by which the write is found in what reaches the
 * disk, so that a watcher of the disk can tell what is durable.
 */
import assert from 'node:assert/strict';
import { BigtableError, Code, codeName } from '../../src/base/index.ts';
import { requestContext, type SeededRandom } from '../../src/env/index.ts';
import type { Engine } from './engine.ts';

export const TABLE = 'projects/p/instances/i/tables/t';
const MARK = /<[a-z0-9-]+>/g;

export class Ledger {
  readonly acknowledged = new Set<string>();
  readonly unknown = new Set<string>();
  readonly refused = new Set<string>();
  /** Rows whose bytes a sync has surely made durable. */
  readonly durable = new Set<string>();
  /** Rows that were acknowledged before that. */
  readonly early: string[] = [];
  syncs = 0;
  failedSyncs = 0;

  /** Called by the watcher of the disk: these bytes are durable now. */
  synced(bytes: Buffer): void {
    this.syncs++;
    for (const [mark] of bytes.toString('latin1').matchAll(MARK)) this.durable.add(mark.slice(1, -1));
  }

  acknowledge(row: string): void {
    if (!this.durable.has(row)) this.early.push(row);
    this.acknowledged.add(row);
  }

  get words(): string {
    const { syncs, failedSyncs, acknowledged, unknown, refused } = this;
    return `${syncs} syncs (${failedSyncs} failed), ${acknowledged.size} acknowledgements, ${unknown.size} unknown, ${refused.size} refused`;
  }
}

export async function createTable({ service, env }: Engine): Promise<void> {
  const families = [{ name: 'f' }];
  await service.createTable(requestContext({ budget: env.requestBudget }), {
    name: TABLE,
    families,
    splits: ['g', 'n', 't'],
    granularity: 'micros',
    deletionProtection: false,
  });
}

const valueOf = (row: string, paddingBytes = 0): Buffer => Buffer.from(`<${row}>${'.'.repeat(paddingBytes)}`);

export interface Writing {
  readonly engine: Engine;
  readonly ledger: Ledger;
  readonly random: SeededRandom;
  /** Part of every row's name. */
  readonly round: string;
  readonly writers: number;
  /** Bytes of every value besides its mark. Default 0. */
  readonly paddingBytes?: number;
  /** Asked before each write. */
  more(): boolean;
  /** The errors that a write may fail with. */
  readonly allowed: readonly Code[];
}

/** Writes until there is to be no more; each writer waits for one write before the next. */
export async function write({
  engine,
  ledger,
  random,
  round,
  writers,
  paddingBytes,
  more,
  allowed,
}: Writing): Promise<void> {
  const { service, env } = engine;
  const note = (row: string, thrown: unknown): void => {
    ledger.unknown.delete(row);
    if (thrown === undefined) return ledger.acknowledge(row);
    assert.ok(thrown instanceof BigtableError, thrown instanceof Error ? thrown.stack : String(thrown));
    assert.ok(allowed.includes(thrown.code), `${codeName(thrown.code)}: ${thrown.message}`);
    if (thrown.code === Code.RESOURCE_EXHAUSTED) ledger.refused.add(row);
    else ledger.unknown.add(row);
  };
  const context = () => requestContext({ budget: env.requestBudget });
  const mutationOf = (row: string) =>
    ({ kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1, value: valueOf(row, paddingBytes) }) as const;
  const one = async (writer: number, count: number): Promise<void> => {
    // first letters are spread over the tablets
    const name = (i: number): string =>
      `${String.fromCharCode(97 + ((writer * 7 + count + i) % 26))}${round}-${writer}-${count}-${i}`;
    const draw = random.float();
    const rows = Array.from({ length: draw < 0.15 ? 5 : 1 }, (_, i) => name(i));
    for (const row of rows) ledger.unknown.add(row);
    const [first] = rows as [string];
    try {
      if (rows.length > 1) {
        const entries = rows.map((row) => ({ row, mutations: [mutationOf(row)] }));
        const outcomes = await service.mutateRows(context(), TABLE, entries);
        outcomes.forEach((outcome, i) => note(rows[i] as string, outcome));
        return;
      }
      if (draw < 0.25)
        await service.checkAndMutateRow(context(), {
          table: TABLE,
          row: first,
          whenTrue: [],
          whenFalse: [mutationOf(first)],
        });
      else if (draw < 0.35)
        await service.readModifyWriteRow(context(), TABLE, first, [
          { family: 'f', qualifier: 'q', change: { kind: 'append', suffix: valueOf(first, paddingBytes) } },
        ]);
      else await service.mutateRow(context(), TABLE, { row: first, mutations: [mutationOf(first)] });
      note(first, undefined);
    } catch (error) {
      for (const row of rows) note(row, error);
    }
  };
  const writer = async (index: number): Promise<void> => {
    for (let count = 0; more(); count++) await one(index, count);
  };
  await Promise.all(Array.from({ length: writers }, (_, index) => writer(index)));
}

/** One write, given so long. */
export async function isWritten({ service, env }: Engine, row: string, timeoutMs: number): Promise<boolean> {
  const context = requestContext({ budget: env.requestBudget, deadlineMs: env.clock.monotonicMs() + timeoutMs });
  const mutation = { kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1, value: valueOf(row) } as const;
  try {
    await service.mutateRow(context, TABLE, { row, mutations: [mutation] });
    return true;
  } catch (error) {
    assert.ok(
      error instanceof BigtableError && [Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED].includes(error.code as 14 | 4),
      String(error),
    );
    return false;
  }
}

/**
 * Reads the table whole: everything acknowledged is there as it was written, and nothing that was refused or never
 * written.
 */
export async function checkTable({ service, env }: Engine, ledger: Ledger): Promise<void> {
  const seen = new Set<string>();
  for await (const { fragments } of service.readRows(requestContext({ budget: env.requestBudget }), { table: TABLE })) {
    for (const { row, cells } of fragments) {
      for (const { value } of cells) {
        assert.equal(Buffer.from(value).toString().replace(/\.+$/, ''), `<${row}>`);
        assert.ok(!seen.has(row), `row ${row} comes twice`);
        seen.add(row);
      }
    }
  }
  const lost = [...ledger.acknowledged].filter((row) => !seen.has(row));
  assert.deepEqual(lost, [], `of ${ledger.acknowledged.size} acknowledged writes ${lost.length} are lost`);
  const invented = [...seen].filter((row) => !ledger.acknowledged.has(row) && !ledger.unknown.has(row));
  assert.deepEqual(invented, [], 'rows that were refused or never written');
}
