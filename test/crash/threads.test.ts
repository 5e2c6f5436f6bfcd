/**
 * Threads of tablet servers die in the midst of writing: nothing acknowledged is lost, the others serve what the dead
 * one served, a new one takes its place and its share; and a directory is served by another number of threads than
 * before.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { moduleUrl, openDatabase, openThreadedDatabase } from '../../src/boot/index.ts';
import { type Env, requestContext, silentLogger } from '../../src/env/index.ts';
import { BigtableError, Code, type Database, overService, RowMutation, type Table } from '../../src/embedded/index.ts';

const WRITERS = 12;
/** Tablets of the table; METADATA's come on top. */
const TABLETS = 8;
const module = moduleUrl('./mortal-thread.ts', import.meta.url);

const keyOf = (writer: number, n: number): string => `${'abcdefghijkl'[writer]}-${String(n).padStart(6, '0')}`;

/**
 * Writes rows 1, 2, 3 … until told to stop. What has an unknown outcome is written again. Returns the last one
 * acknowledged. A test that has failed ends them at once, whatever the last outcome.
 */
async function write(
  table: Table,
  writer: number,
  stop: { asked: boolean; failed: boolean },
  progress: number[],
): Promise<number> {
  for (let n = 1; ; n++) {
    for (;;) {
      try {
        await table.apply(new RowMutation(keyOf(writer, n)).set('f:v', `value ${n}`, 1000));
        break;
      } catch (error) {
        if (stop.failed) return n - 1;
        assert.ok(error instanceof BigtableError && error.code === Code.UNAVAILABLE, `${error}`);
      }
    }
    progress[writer] = n;
    if (stop.asked || stop.failed) return n;
  }
}

async function check(database: Database, last: readonly number[]): Promise<void> {
  const table = database.table('t');
  for (const [writer, count] of last.entries()) {
    let n = 0;
    for await (const row of table.scan({ prefix: 'abcdefghijkl'[writer] as string }))
      assert.equal(row.name, keyOf(writer, ++n));
    assert.equal(n, count, `writer ${writer}`);
  }
}

/** How many the tablet server of that place serves; 0 while there is none. */
async function tabletsOf({ transport, requestBudget: budget }: Env, place: number): Promise<number> {
  const answer = transport.call(`tablet-server-${place}`, 'status', {}, requestContext({ budget })) as Promise<{
    tablets: readonly unknown[];
  }>;
  return answer.then(({ tablets }) => tablets.length).catch(() => 0);
}

async function eventually(
  what: string,
  messages: readonly string[],
  condition: () => boolean | Promise<boolean>,
): Promise<void> {
  const endMs = performance.now() + 60_000;
  while (!(await condition())) {
    assert.ok(performance.now() < endMs, `${what}; ${messages.join('\n')}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test('threads die while they are written to, one after the other', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-mortal-'));
  const cleanUp: (() => Promise<unknown>)[] = [];
  t.after(async () => {
    await Promise.allSettled(cleanUp.map((step) => step()));
    await rm(directory, { recursive: true, force: true });
  });
  const messages: string[] = [];
  const note = (message: string, fields: object = {}): void =>
    void messages.push(`${message} ${JSON.stringify(fields)}`);
  const threaded = await openThreadedDatabase({
    directory,
    tabletServers: 2,
    module,
    logger: { ...silentLogger, info: note, warn: note, error: note },
  });
  const database = overService(threaded.service, threaded.env, threaded.close);
  await threaded.listen({});
  await database.createTable('t', { families: { f: {} }, splits: [...'bcdefgh'] });

  const stop = { asked: false, failed: false };
  const progress = new Array<number>(WRITERS).fill(0);
  const writing = Promise.all(progress.map((_, writer) => write(database.table('t'), writer, stop, progress)));
  const { env } = threaded;
  cleanUp.push(() => {
    stop.failed = true;
    return Promise.allSettled([writing, database.close()]);
  });
  for (const place of [0, 1]) {
    const before = [...progress];
    await eventually('writers go on', messages, () => progress.every((n, i) => n > (before[i] as number) + 20));
    const died = messages.length;
    await env.lockService.write(`mortal/${place}`, Buffer.from('now'));
    await eventually('the thread dies', messages, () =>
      messages.slice(died).some((line) => line.includes('killed by the test') && line.includes(`"thread":${place}`)),
    );
    const after = [...progress];
    await eventually('all rows are served again', messages, () =>
      progress.every((n, i) => n > (after[i] as number) + 20),
    );
    await eventually(
      'the new thread gets its share',
      messages,
      async () => (await tabletsOf(env, place)) >= TABLETS / 2,
    );
  }
  stop.asked = true;
  const last = await writing;
  await check(database, last);
  const counters = await threaded.counters();
  assert.equal(counters.size, 2);
  await database.close();

  for (const tabletServers of [3, 2]) {
    const again = await openThreadedDatabase({ directory, tabletServers, module });
    const reopened = overService(again.service, again.env, again.close);
    await check(reopened, last);
    await reopened.close();
  }
  const single = await openDatabase({ directory });
  const alone = overService(single.service, single.env, single.close);
  await check(alone, last);
  await alone.close();
});
