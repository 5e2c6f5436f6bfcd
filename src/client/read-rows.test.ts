import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Cluster, type InterceptedStream, inCluster } from '../../test/cluster.ts';
import { rejectsWith, setCell, TABLES, type Tables } from '../../test/tables.ts';
import { BigtableError, Code, unavailable } from '../base/index.ts';
import { LIMITS, type ReadBatch, type RowRange } from '../model/index.ts';
import { METADATA_TABLE_ID } from '../metadata/index.ts';
import { Client } from './client.ts';
import { notServing, type ReadMessage } from '../protocol/index.ts';

const T = `${TABLES}t`;
const ROWS = [...'abcdefghij'];

async function filled(tables: Tables, splits = ['d', 'h']): Promise<void> {
  await tables.create('t', { splits });
  for (const row of ROWS) await tables.set('t', row, row);
}

const one = (row: string): RowRange => ({ start: row, end: `${row}\0` });
const isUsers = ({ method, context }: InterceptedStream): boolean =>
  method === 'read' && context.principal !== 'master' && context.principal !== 'tablet-server';

/** The batches of users' reads; `then` runs after each number of them. */
function breakAfter(cluster: Cluster, batches: number, then: () => Promise<void> | void): () => number {
  let reads = 0;
  cluster.onStream = (stream) => {
    if (!isUsers(stream) || (stream.message as ReadMessage).tableId === METADATA_TABLE_ID) return undefined;
    if (++reads > 1) return undefined;
    return (async function* () {
      let given = 0;
      for await (const batch of stream.go()) {
        if (given++ === batches) break;
        yield batch;
      }
      await then();
    })();
  };
  return () => reads;
}

describe('a read', () => {
  test(
    'reads all tablets, forward and backward, with ranges and limits',
    inCluster(async (_cluster, tables) => {
      await filled(tables);
      assert.deepEqual(await tables.rows('t'), ROWS);
      assert.deepEqual(await tables.rows('t', { reversed: true }), [...ROWS].reverse());
      const ranges = [one('i'), { start: 'b', end: 'e' }, one('b'), { start: 'h', end: undefined }];
      assert.deepEqual(await tables.rows('t', { ranges }), ['b', 'c', 'd', 'h', 'i', 'j']);
      assert.deepEqual(await tables.rows('t', { ranges, reversed: true }), ['j', 'i', 'h', 'd', 'c', 'b']);
      assert.deepEqual(await tables.rows('t', { ranges, rowsLimit: 4 }), ['b', 'c', 'd', 'h']);
      assert.deepEqual(await tables.rows('t', { ranges, rowsLimit: 2, reversed: true }), ['j', 'i']);
      assert.deepEqual(await tables.rows('t', { ranges: [{ start: 'k', end: 'l' }], reversed: true }), []);
    }),
  );

  test(
    'whose filter names a family is NOT_FOUND without it, also where only the file of the schema shows it',
    inCluster(async (cluster, tables) => {
      await filled(tables);
      const named = (family: string) => tables.rows('t', { filter: { kind: 'familyNameRegex', regex: family } });
      await rejectsWith(Code.NOT_FOUND, () => named('late'), /t has no column family "late", which the filter names/);
      assert.deepEqual(await named('late|f'), ROWS);
      // another client adds it, and no watch tells this one
      cluster.hidesChangesOf = 'schemas/';
      const other = await Client.open({ env: cluster.env, limits: LIMITS.default });
      await other.modifyFamilies(tables.context(), T, [{ kind: 'create', family: { name: 'late' } }]);
      assert.deepEqual(await named('late'), []);
      other.close();
    }),
  );

  test(
    'of very many ranges is made of several messages a tablet',
    inCluster(async (cluster, tables) => {
      await filled(tables, ['p5']);
      const rows = Array.from({ length: 5000 }, (_, i) => `p${`${i}`.padStart(4, '0')}`);
      for (const row of ['p0000', 'p2500', 'p4999', 'p9']) await tables.set('t', row, row);
      const messages: number[] = [];
      cluster.onStream = (stream) => {
        if (isUsers(stream)) messages.push((stream.message as ReadMessage).ranges.length);
        return undefined;
      };
      const ranges = [...rows.map(one), one('p9')];
      assert.deepEqual(await tables.rows('t', { ranges }), ['p0000', 'p2500', 'p4999', 'p9']);
      assert.ok(messages.length >= 4 && messages.every((count) => count <= 2048), `${messages}`);
      assert.deepEqual(await tables.rows('t', { ranges, reversed: true }), ['p9', 'p4999', 'p2500', 'p0000']);
    }),
  );

  test(
    'that names no row reads nothing, and is checked like any other',
    inCluster(async (cluster, tables) => {
      await filled(tables);
      let reads = 0;
      cluster.onStream = () => void reads++;
      const ranges = [{ start: 'b', end: 'b' }];
      assert.deepEqual(await tables.rows('t', { ranges }), []);
      await rejectsWith(Code.NOT_FOUND, tables.rows('none', { ranges }));
      await rejectsWith(
        Code.INVALID_ARGUMENT,
        tables.rows('t', { ranges, filter: { kind: 'familyNameRegex', regex: '(' } }),
      );
      await rejectsWith(Code.INVALID_ARGUMENT, tables.rows('t', { rowsLimit: -1 }));
      assert.equal(reads, 0);
    }),
  );

  test(
    'continues after the last whole row when its tablet moves, in both directions',
    inCluster(
      async (cluster, tables) => {
        await filled(tables);
        for (const reversed of [false, true]) {
          const reads = breakAfter(cluster, 1, () => {
            throw notServing('t', 'a');
          });
          const rows = await tables.rows('t', { reversed });
          assert.deepEqual(rows, reversed ? [...ROWS].reverse() : ROWS);
          assert.ok(reads() >= 3, `${reads()}`);
        }
        // the tablet has ended with its server
        breakAfter(cluster, 1, async () => {
          await cluster.kill(0);
          throw unavailable('the server has ended');
        });
        assert.deepEqual(await tables.rows('t', { rowsLimit: 9 }), ROWS.slice(0, 9));
      },
      { servers: 2 },
    ),
  );

  test(
    'fails if its tablet moves inside a row',
    inCluster(async (cluster, tables) => {
      await filled(tables);
      cluster.onStream = (stream) =>
        isUsers(stream)
          ? (async function* () {
              for await (const batch of stream.go()) {
                const { fragments } = batch as ReadBatch;
                yield { ...(batch as ReadBatch), fragments: fragments.map((one) => ({ ...one, last: false })) };
                throw notServing('t', 'a');
              }
            })()
          : undefined;
      await rejectsWith(Code.UNAVAILABLE, tables.rows('t'), /in the midst of a row/);
    }),
  );

  test(
    'fails with the error of its tablet if no other server can do better',
    inCluster(async (cluster, tables) => {
      await filled(tables);
      for (const code of [Code.DATA_LOSS, Code.RESOURCE_EXHAUSTED]) {
        breakAfter(cluster, 0, () => {
          throw new BigtableError(code, 'no');
        });
        await rejectsWith(code, tables.rows('t'), /^no$/);
      }
      // and when its time is over while it searches for its tablet
      cluster.onStream = (stream) =>
        isUsers(stream)
          ? (async function* () {
              throw notServing('t', 'a');
              // biome-ignore lint/correctness/noUnreachable: makes it a generator of batches
              yield undefined;
            })()
          : undefined;
      const read = cluster.client.readRows(tables.context(1000), { table: T })[Symbol.asyncIterator]();
      await rejectsWith(Code.UNAVAILABLE, () => read.next());
      assert.equal((await read.next()).done, true);
    }),
  );

  test(
    'ends when its reader does, also during a wait',
    inCluster(async (cluster, tables) => {
      await filled(tables);
      for await (const _ of cluster.client.readRows(tables.context(), { table: T })) break;
      let ended = false;
      let waiting = (): void => {};
      const reached = new Promise<void>((resolve) => (waiting = resolve));
      cluster.onStream = (stream) =>
        isUsers(stream)
          ? (async function* () {
              try {
                yield* stream.go();
                waiting();
                await new Promise<void>((resolve) => cluster.clock.timer(1000, resolve));
                yield* stream.go();
              } finally {
                ended = true;
              }
            })()
          : undefined;
      const read = cluster.client.readRows(tables.context(), { table: T })[Symbol.asyncIterator]();
      await read.next();
      const next = read.next();
      await reached;
      await read.return?.();
      await next;
      assert.equal((await read.next()).done, true);
      assert.equal(ended, true);
      const never = cluster.client.readRows(tables.context(), { table: T })[Symbol.asyncIterator]();
      await never.return?.();
      assert.equal((await never.next()).done, true);
    }),
  );

  test(
    'returns rows of several fragments whole, and counts them once',
    inCluster(async (_cluster, tables) => {
      await tables.create('t');
      const big = 'x'.repeat(300_000);
      for (const row of ['a', 'b', 'c'])
        await tables.mutate('t', row, ...[1, 2, 3, 4].map((time) => setCell(big, 'f', time)));
      assert.deepEqual(
        (await tables.read('t', { rowsLimit: 2 })).map(([row, ...values]) => [row, values.length]),
        [
          ['a', 4],
          ['b', 4],
        ],
      );
    }),
  );
});
