import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Code } from '../../base/index.ts';
import { requestContext } from '../../env/index.ts';
import { keepAlive, rejectsWith, setCell, TABLES } from '../fixtures.ts';
import { type OpenDatabase, openDatabase } from './open-database.ts';

let release = (): void => {};
let directory = '';
before(async () => {
  release = keepAlive();
  directory = await mkdtemp(join(tmpdir(), 'edubba-boot-'));
});
after(async () => {
  release();
  await rm(directory, { recursive: true });
});

async function rowsOf({ service, env }: OpenDatabase): Promise<string[]> {
  const rows: string[] = [];
  for await (const { fragments } of service.readRows(requestContext({ budget: env.requestBudget }), {
    table: `${TABLES}t`,
  }))
    rows.push(...fragments.map(({ row }) => row));
  return rows;
}

async function fill({ service, env }: OpenDatabase, rows: readonly string[]): Promise<void> {
  const context = requestContext({ budget: env.requestBudget });
  for (const row of rows) await service.mutateRow(context, `${TABLES}t`, { row, mutations: [setCell(row)] });
}

const newTable = {
  name: `${TABLES}t`,
  families: [{ name: 'f' }],
  splits: ['m'],
  granularity: 'micros',
  deletionProtection: false,
} as const;

describe('openDatabase', () => {
  test('in a directory: kept over closing, with and without a flush, and owned by one process', async () => {
    const where = join(directory, 'kept');
    let database = await openDatabase({ directory: where });
    await database.service.createTable(requestContext({ budget: database.env.requestBudget }), newTable);
    const rows: string[] = [];
    for (const [i, flush] of [false, true, false, false, false, false, false].entries()) {
      await fill(database, [`a${i}`, `z${i}`]);
      rows.push(`a${i}`, `z${i}`);
      if (flush) await database.flush();
      await rejectsWith(Code.FAILED_PRECONDITION, openDatabase({ directory: where }));
      await database.close();
      database = await openDatabase({ directory: where });
      assert.deepEqual(await rowsOf(database), [...rows].sort());
    }
    await database.sweep();
    assert.ok((await database.env.fileSystem.listLogs('logs/')).length <= 7, 'logs of dead servers do not pile up');
    await database.close();
  });

  test('in memory: gone with its closing', async () => {
    for (let i = 0; i < 2; i++) {
      const database = await openDatabase({ memory: true });
      await database.service.createTable(requestContext({ budget: database.env.requestBudget }), newTable);
      await fill(database, ['b', 'a']);
      assert.deepEqual(await rowsOf(database), ['a', 'b']);
      await database.close();
    }
  });

  test('settings are checked before anything is touched', async () => {
    const where = join(directory, 'untouched');
    await rejectsWith(
      Code.INVALID_ARGUMENT,
      openDatabase({ directory: where, settings: { memtableBytes: 5 } }),
      /memtableBytes must be a whole number of bytes from 1048576/,
    );
    await assert.rejects(rm(where), /ENOENT/);
  });
});
