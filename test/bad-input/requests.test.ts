/**
 * Bad requests at both doors, the embedded library and a server: each is refused with the right code and a message that
 * names what is wrong, nothing of it is applied, and afterwards the process is alive, holds no bytes, and
 * serves good requests.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { connect, openDatabase } from '../../src/boot/index.ts';
import { BigtableError, Code, type Database, open, overService, RowMutation } from '../../src/embedded/index.ts';
import type { ByteBudget } from '../../src/env/index.ts';
import { startServer } from '../../src/server/index.ts';
import { LIBRARY_REQUESTS } from './library-requests.ts';

type Limits = 'default' | 'cloud';

interface Door {
  readonly database: Database;
  /** Budget of the serving process; undefined where it cannot be seen. */
  readonly budget?: ByteBudget;
  close(): Promise<void>;
}

const DOORS: readonly { readonly name: string; readonly limits: Limits; start(): Promise<Door> }[] = (
  ['default', 'cloud'] as const
).flatMap((limits) => [
  { name: `embedded, limits ${limits}`, limits, start: () => embedded(limits) },
  { name: `a server, limits ${limits}`, limits, start: () => served(limits) },
]);

async function embedded(limits: Limits): Promise<Door> {
  const database = await open(':memory:', { limits });
  return { database, close: () => database.close() };
}

async function served(limits: Limits): Promise<Door> {
  const { service, env, close } = await openDatabase({ memory: true, settings: { limits } });
  const server = await startServer({ service, env, address: '127.0.0.1:0' });
  const connection = await connect(server.address);
  const database = overService(connection.service, connection.env, connection.close);
  return {
    database,
    budget: env.requestBudget,
    close: async () => {
      await database.close();
      await server.close();
      await close();
    },
  };
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heldBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function linesOf(database: Database): Promise<string[]> {
  const lines: string[] = [];
  for (const name of await database.listTables()) {
    const table = database.table(name);
    lines.push(JSON.stringify(await table.schema()));
    for await (const row of table.scan({ versions: 'all' }))
      for (const cell of row.cells)
        lines.push(`${name} ${row.name} ${cell.column}@${cell.timestamp}=${cell.value.toString('hex')}`);
  }
  return lines;
}

for (const { name, limits, start } of DOORS) {
  describe(`bad requests: ${name}`, () => {
    let door: Door;
    let asIs: string[];

    before(async () => {
      door = await start();
      const { database } = door;
      await database.createTable('t', {
        families: { f: {}, g: {}, sum: { aggregate: 'sum' }, low: { aggregate: 'min' } },
        splits: ['m'],
        granularity: 'millis',
      });
      await database.table('t').apply(new RowMutation('kept').set('f:text', 'not a number', 1000).set('f:n', 7n, 1000));
      asIs = await linesOf(database);
    });
    after(() => door.close());

    for (const request of LIBRARY_REQUESTS) {
      if (request.limits !== undefined && request.limits !== limits) continue;
      test(request.name, async () => {
        const { database } = door;
        await assert.rejects(
          async () => request.ask(database.table('t'), database),
          (error) => {
            assert.ok(error instanceof BigtableError, error instanceof Error ? error.stack : String(error));
            assert.equal(error.code, request.code, error.message);
            assert.match(error.message, request.says);
            assert.ok(error.message.length < 3000, `a message of ${error.message.length} characters`);
            return true;
          },
        );
      });
    }

    test('after all of it nothing has changed, nothing is held, and good requests are served', async () => {
      const { database, budget } = door;
      assert.deepEqual(await linesOf(database), asIs);
      const table = database.table('t');
      const before = heldBytes();
      for (let round = 0; round < 3; round++) {
        for (const request of LIBRARY_REQUESTS) {
          if (/MiB|100,001/.test(request.name) || (request.limits !== undefined && request.limits !== limits)) continue;
          await Promise.resolve()
            .then(() => request.ask(table, database))
            .catch(() => {});
        }
      }
      const grown = heldBytes() - before;
      assert.ok(grown < 16 * 1024 * 1024, `refused requests hold ${grown} bytes`);
      if (budget) assert.deepEqual([budget.usedBytes, budget.waiting], [0, 0]);
      await table.apply(new RowMutation('good').set('f:q', 'written', 1000));
      assert.equal((await table.getCell('good', 'f:q'))?.text, 'written');
      await table.deleteRow('good');
      assert.deepEqual(await linesOf(database), asIs);
    });
  });
}

test('calls of a closed database are refused in words, one after another', async () => {
  const { database } = await embedded('default');
  const table = await database.createTable('t', { families: { f: {} } });
  const scan = table.scan();
  await database.close();
  const calls: (() => Promise<unknown>)[] = [
    () => table.apply(new RowMutation('r').set('f:q', 'v')),
    () => table.applyAll([new RowMutation('r').set('f:q', 'v')]),
    () => table.get('r'),
    () => scan.next(),
    () => table.increment('r', 'f:n'),
    () => table.append('r', 'f:n', 'x'),
    () => table.checkAndMutate('r', { column: 'f:q' }, { then: (row) => row.deleteRow() }),
    () => table.deleteRow('r'),
    () => table.deleteRows({ prefix: 'r' }),
    () => table.deleteAllRows(),
    () => table.sampleKeys(),
    () => table.schema(),
    () => table.createFamily('g'),
    () => table.setGcRule('f', 'never'),
    () => table.deleteFamily('f'),
    () => database.createTable('u'),
    () => database.listTables(),
    () => database.hasTable('t'),
    () => database.deleteTable('t'),
  ];
  for (const call of calls)
    await assert.rejects(call, { code: Code.FAILED_PRECONDITION, message: /the database is closed/ }, String(call));
  await database.close();
});

test('a scan that is under way when the database closes ends', async () => {
  const { database } = await embedded('default');
  const table = await database.createTable('t', { families: { f: {} } });
  for (const row of ['a', 'b', 'c']) await table.apply(new RowMutation(row).set('f:q', 'v'));
  const scan = table.scan();
  assert.equal((await scan.next()).value?.name, 'a');
  await database.close();
  let rows = 1;
  try {
    for await (const _ of scan) rows++;
  } catch (error) {
    assert.ok(
      error instanceof BigtableError && [Code.UNAVAILABLE, Code.FAILED_PRECONDITION].includes(error.code as 14 | 9),
      String(error),
    );
    return;
  }
  assert.equal(rows, 3);
});
