/** The writers and the reader of a linked-list test on a server in memory. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { openDatabase } from '../../src/boot/index.ts';
import { connect, type Database, RowMutation, type Table } from '../../src/embedded/index.ts';
import { SeededRandom } from '../../src/env/index.ts';
import { startServer } from '../../src/server/index.ts';
import { Doors } from '../cluster/doors.ts';
import { Failures } from '../cluster/failures.ts';
import { Chain } from './chain.ts';
import { FAMILY, keyOf, PREV, TABLE } from './nodes.ts';
import { scanAll } from './scan.ts';
import { Verification } from './verification.ts';
import { Writer } from './writer.ts';

const SEED = 5;
const WIDTH = 50;
const NODES = 330;
/** Nothing listens there. */
const UNREACHABLE = '127.0.0.1:1';

describe('a linked list on a server', () => {
  let address: string;
  let database: Database;
  let failures: Failures;
  let close: () => Promise<void>;
  before(async () => {
    const opened = await openDatabase({ memory: true });
    const server = await startServer({ service: opened.service, env: opened.env, address: '127.0.0.1:0' });
    ({ address } = server);
    database = await connect(address);
    const folder = await mkdtemp(join(tmpdir(), 'edubba-linked-list-'));
    failures = new Failures(join(folder, 'failed-calls'));
    close = async () => {
      await database.close();
      await server.close();
      await opened.close();
      await rm(folder, { recursive: true });
    };
  });
  after(() => close());

  /** Two clients write; what is found after that. */
  async function found(
    meddle: (table: Table) => Promise<void>,
    doors: readonly string[] = [address],
  ): Promise<Verification> {
    await database.createTable(TABLE, { families: { [FAMILY]: { maxVersions: 1 } }, splits: ['8'] });
    const random = new SeededRandom(SEED);
    const chains = [new Chain(NODES, WIDTH), new Chain(NODES, WIDTH)];
    for (const [number, chain] of chains.entries()) {
      const writer = new Writer({ seed: SEED, number, chain, doors: await Doors.at(doors, random), random, failures });
      writer.allow(NODES);
      await writer.run();
      assert.ok(chain.isComplete && writer.answeredCallMs > 0);
      await writer.close();
    }
    await meddle(database.table(TABLE));
    const verification = new Verification(SEED, chains);
    const reader = await Doors.at([address], random);
    await scanAll(reader, (row) => verification.see(row));
    await reader.close();
    verification.end();
    await database.deleteTable(TABLE);
    return verification;
  }

  test('all nodes are found', async () => {
    const { counts, badRows } = await found(async () => {});
    assert.deepEqual([badRows, failures.since(0)], [[], []]);
    assert.deepEqual(counts, { rows: 2 * NODES, unknownFound: 0, holes: 0, wrong: 0 });
  });

  test('a node that is gone is a hole', async () => {
    const key = keyOf(SEED, { chain: 1, index: 77 });
    const { counts, badRows } = await found((table) => table.deleteRow(key));
    assert.deepEqual(badRows, [{ key, isHole: true, what: 'node 1/77 was acknowledged and is missing' }]);
    assert.deepEqual(counts, { rows: 2 * NODES - 1, unknownFound: 0, holes: 1, wrong: 0 });
  });

  test('where a door does not answer, nodes are written through another one or left, and the list is right', async () => {
    const before = failures.count;
    const { counts, badRows } = await found(async () => {}, [UNREACHABLE, address]);
    assert.deepEqual(badRows, []);
    assert.ok(failures.count > before && counts.rows > 0);
  });

  test('a changed prev, and rows of nowhere before and after all keys, are found', async () => {
    const key = keyOf(SEED, { chain: 0, index: 300 });
    const { badRows } = await found((table) =>
      table.applyAll([key, ' ', '~'].map((row) => new RowMutation(row).set(PREV, 'stray'))),
    );
    assert.deepEqual(badRows.map((bad) => bad.key).sort(), [' ', key, '~'].sort());
  });
});
