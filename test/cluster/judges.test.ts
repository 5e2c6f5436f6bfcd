import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { connect, type Database, RowMutation } from '../../src/embedded/index.ts';
import { startServer } from '../../src/server/index.ts';
import { openDatabase } from '../../src/boot/index.ts';
import { TABLE } from '../linearizability/calls.ts';
import { Contention } from './contention.ts';
import type { Finding } from './findings.ts';
import { Failures } from './failures.ts';
import { Ledger } from './ledger.ts';

const CALLS = 60;

/** Resolves when the count has come so far. */
async function reached(count: () => number, least = CALLS): Promise<void> {
  while (count() < least) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe('the judges of a cluster test', () => {
  let address: string;
  let database: Database;
  let close: () => Promise<void>;
  let folder: string;
  let tables = 0;
  before(async () => {
    const opened = await openDatabase({ memory: true });
    const server = await startServer({ service: opened.service, env: opened.env, address: '127.0.0.1:0' });
    ({ address } = server);
    database = await connect(address);
    folder = await mkdtemp(join(tmpdir(), 'edubba-judges-'));
    close = async () => {
      await database.close();
      await server.close();
      await opened.close();
      await rm(folder, { recursive: true });
    };
  });
  after(() => close());

  async function ledger(meddle: (row: string) => Promise<void>): Promise<readonly string[]> {
    const failures = new Failures(join(folder, 'failed-calls'));
    const tested = await Ledger.open([address], 1, failures);
    tested.begin();
    await reached(() => tested.counts.acknowledged);
    const names = (await database.table(tested.table).scan().toArray()).map(({ name }) => name);
    await meddle(names[0]!);
    await tested.end();
    assert.equal(tested.counts.compared >= names.length && failures.count === 0, true, failures.since(0).join('\n'));
    await tested.close();
    await database.deleteTable(tested.table);
    return tested.findings;
  }

  async function contention(meddle: (row: string) => Promise<void>): Promise<readonly Finding[]> {
    const historiesFile = join(folder, `histories-${++tables}`);
    const tested = await Contention.open({
      addresses: [address],
      seed: 1,
      failures: new Failures(join(folder, 'failed-calls')),
      historiesFile,
    });
    tested.begin(1, 1);
    await reached(() => tested.counts.answered);
    const violations = await tested.end();
    assert.deepEqual(violations, []);
    const histories = (await readFile(historiesFile, 'utf8')).trimEnd().split('\n');
    assert.ok(histories.length === 16 && histories.every((line) => Array.isArray(JSON.parse(line))));
    await meddle('row-03-0001');
    const found = await tested.endAll();
    await tested.close();
    await database.deleteTable(TABLE);
    return found;
  }

  test('a ledger that nobody meddles with is right', async () => {
    assert.deepEqual(await ledger(async () => {}), []);
  });

  test('an acknowledged write that is gone is found', async () => {
    const found = await ledger((row) => database.table('ledger').deleteRow(row));
    assert.match(found.at(-1)!, /found nothing, acknowledged \d+/);
  });

  test('a value that nobody wrote is found', async () => {
    const found = await ledger((row) => database.table('ledger').apply(new RowMutation(row).set('d:v', 'older')));
    assert.match(found.at(-1)!, /found older, acknowledged \d+/);
  });

  test('contending clients have linearizable rows', async () => {
    assert.deepEqual(await contention(async () => {}), []);
  });

  test('a row that changes after its round is found', async () => {
    const found = await contention((row) => database.table(TABLE).apply(new RowMutation(row).set('f:a', 'stray')));
    assert.match(found.map(({ what }) => what).join('\n'), /row-03-0001 is not linearizable/);
  });
});
