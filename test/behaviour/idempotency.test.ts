/** Writes with a token at every door: made once, over restarts too, and refused when they come too late. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code, readInt64BE } from '../../src/base/index.ts';
import type { Idempotency, Mutation, RowMutations } from '../../src/model/index.ts';
import { LASTING_DOORS, LastingDoor } from './lasting-doors.ts';

const TABLE = 'projects/p/instances/i/tables/t';
const add = (input: number): Mutation => ({ kind: 'addToCell', family: 'sum', qualifier: 'n', timestamp: 0, input });
const MINUTE_MS = 60_000;

for (const { name: doorName, make } of LASTING_DOORS) {
  describe(`writes with a token: ${doorName}`, () => {
    const door = new LastingDoor(make, async ({ service, context }) => {
      await service.createTable(context, {
        name: TABLE,
        families: [{ name: 'sum', valueType: { aggregate: { kind: 'sum', input: 'int64' } } }],
        splits: ['m'],
        granularity: 'micros',
        deletionProtection: false,
      });
    });

    const entryOf = (row: string, idempotency: Idempotency, ...mutations: readonly Mutation[]): RowMutations => ({
      row,
      mutations: mutations.length > 0 ? mutations : [add(1)],
      idempotency,
    });
    const write = (row: string, idempotency: Idempotency): Promise<void> =>
      door.service.mutateRow(door.context, TABLE, entryOf(row, idempotency));

    async function countOf(row: string): Promise<unknown> {
      const ranges = [{ start: row, end: `${row}\0` }];
      for await (const { fragments } of door.service.readRows(door.context, { table: TABLE, ranges }))
        for (const { cells } of fragments)
          if (cells[0] !== undefined) return readInt64BE(Buffer.from(cells[0].value), 0);
      return 0;
    }

    test('are made once, alone and in batches, before and after a restart', async () => {
      const rows = ['a', 'z'];
      const attempt = async (): Promise<void> => {
        for (const row of rows) await write(row, { token: 'token-01', startMs: Date.now() - MINUTE_MS });
        const batch = rows.flatMap((row) => [
          entryOf(row, { token: 'token-02' }, add(10)),
          { row, mutations: [add(100)] },
        ]);
        assert.deepEqual(
          await door.service.mutateRows(door.context, TABLE, batch),
          batch.map(() => undefined),
        );
      };
      await attempt();
      await attempt();
      for (const row of rows) assert.equal(await countOf(row), 211, row);
      await door.reopen();
      await attempt();
      for (const row of rows) assert.equal(await countOf(row), 311, row);
    });

    test('are refused, with nothing written, when they come too late or have no proper token', async () => {
      const refusals: readonly (readonly [Idempotency, Code, RegExp])[] = [
        [{ token: 'token-01', startMs: Date.now() - 16 * MINUTE_MS }, Code.FAILED_PRECONDITION, /96\d s ago/],
        [{ token: 'short' }, Code.INVALID_ARGUMENT, /8 to 1024 bytes; this one has 5/],
        [{ token: '' }, Code.INVALID_ARGUMENT, /this one has 0/],
        [{ token: 'x'.repeat(1025) }, Code.INVALID_ARGUMENT, /this one has 1025/],
      ];
      for (const [idempotency, code, words] of refusals) {
        const isRefusal = (error: unknown): boolean =>
          error instanceof BigtableError && error.code === code && words.test(error.message);
        await assert.rejects(write('late', idempotency), isRefusal);
        const batch = [entryOf('late', idempotency), entryOf(`other ${words.source}`, { token: 'token-01' })];
        const [refused, done] = await door.service.mutateRows(door.context, TABLE, batch);
        assert.ok(isRefusal(refused), `${refused}`);
        assert.equal(done, undefined);
      }
      assert.equal(await countOf('late'), 0);
    });
  });
}
