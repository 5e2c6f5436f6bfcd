/** The setting `durability`: the time of acknowledgements, and the writes that a crash may lose. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { BigtableError, Code } from '../base/index.ts';
import type { FileFaults, FileOperation, LockService } from '../env/index.ts';
import { TabletServer } from '../tabletserver/index.ts';
import { keepAlive, rejectsWith, type TestDatabase, World } from './fixtures.ts';
import { checkSettings, tabletServerSettings } from './settings/settings.ts';

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

const BUFFERED = { durability: 'buffered' } as const;
const MIB = 1024 * 1024;

/** Appends to logs that wait while they are held, before their sync or before anything is written. */
class Syncs {
  #gate: Promise<void> = Promise.resolve();
  #held: FileOperation = 'syncLog';
  release = (): void => {};
  error: BigtableError | undefined;

  readonly faults: FileFaults = async (operation) => {
    if (operation !== this.#held) return;
    await this.#gate;
    if (this.error) throw this.error;
  };

  hold(operation: 'syncLog' | 'appendLog' = 'syncLog'): void {
    this.#held = operation;
    this.#gate = new Promise((resolve) => (this.release = resolve));
  }
}

async function started(syncs: Syncs, settings: object = BUFFERED): Promise<{ world: World; db: TestDatabase }> {
  const world = new World({ settings, faults: syncs.faults });
  const db = await world.start();
  await db.create('t');
  return { world, db };
}

/** True when it is settled after some turns of the event loop. */
async function isSettled(work: Promise<unknown>): Promise<boolean> {
  let settled = false;
  void work.catch(() => {}).then(() => (settled = true));
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  return settled;
}

const numbers = (rows: readonly string[]): number[] => rows.map(Number).sort((a, b) => a - b);

describe('durability', () => {
  test('synced: no write is acknowledged before its sync', async () => {
    const syncs = new Syncs();
    const { db } = await started(syncs, {});
    syncs.hold();
    const write = db.set('t', 'a', '1');
    assert.equal(await isSettled(write), false);
    syncs.release();
    await write;
    await db.close();
  });

  test('buffered: a write is acknowledged and visible before its sync; a change of METADATA is not', async () => {
    const syncs = new Syncs();
    const { db } = await started(syncs);
    syncs.hold();
    for (let i = 0; i < 10; i++) await db.set('t', String(i), '1');
    assert.equal((await db.rows('t')).length, 10);
    const created = db.create('other');
    assert.equal(await isSettled(created), false);
    syncs.release();
    await created;
    await db.close();
  });

  test('buffered: a crash loses only the newest writes, and none that was closed or flushed', async () => {
    for (const choice of ['nothing', 'torn', 'all'] as const) {
      const syncs = new Syncs();
      const { world, db } = await started(syncs);
      for (let i = 0; i < 50; i++) await db.set('t', String(i), '1');
      await db.database.flush();
      for (let i = 50; i < 100; i++) await db.set('t', String(i), '1');
      syncs.hold();
      for (let i = 100; i < 150; i++) await db.set('t', String(i), '1');
      world.crash(choice);
      syncs.release();
      syncs.hold = () => {};
      const next = await world.start();
      const found = numbers(await next.rows('t'));
      assert.deepEqual(
        found,
        Array.from({ length: found.length }, (_, i) => i),
        'a later write is there without an earlier one',
      );
      assert.ok(found.length >= 50, `${found.length} rows are left`);
      await next.set('t', '1000', '1');
      await next.close();
      world.crash('nothing');
      const last = await world.start();
      assert.deepEqual(numbers(await last.rows('t')), [...found, 1000]);
      await last.close();
    }
  });

  test('buffered: writes wait when too many bytes are not synced', async () => {
    const syncs = new Syncs();
    const { db } = await started(syncs, { ...BUFFERED, memtableBytes: 64 * MIB });
    syncs.hold();
    const value = 'x'.repeat(MIB / 2);
    const writes = Array.from({ length: 20 }, (_, i) => db.set('t', String(i), value));
    const settled = await Promise.all(writes.map(isSettled));
    const acknowledged = settled.filter((done) => done).length;
    assert.ok(
      acknowledged > 0 && acknowledged <= 9,
      `${acknowledged} writes of half a MiB were acknowledged before a sync`,
    );
    syncs.release();
    await Promise.all(writes);
    assert.equal((await db.rows('t')).length, 20);
    await db.close();
  });

  test('buffered: a server ends when its log fails, though no caller waits for it', async () => {
    const syncs = new Syncs();
    const { world, db } = await started(syncs);
    await db.set('t', 'before', '1');
    await db.database.flush();
    syncs.hold();
    await db.set('t', 'lost', '1');
    syncs.error = new BigtableError(Code.UNAVAILABLE, 'the disk is gone for a moment');
    syncs.release();
    while (!world.messages.some((message) => message.includes('a tablet server ends itself')))
      await new Promise((resolve) => setImmediate(resolve));
    syncs.error = undefined;
    await db.set('t', 'after', '1');
    const rows = await db.rows('t');
    assert.deepEqual(
      rows.filter((row) => row !== 'lost'),
      ['after', 'before'],
    );
    await db.close();
  });

  for (const tabletServers of [1, 3]) {
    test(`buffered: a full disk refuses writes, loses none that was acknowledged, and serves reads: tablet servers: ${tabletServers}`, async () => {
      const world = new World({ settings: BUFFERED, tabletServers });
      const db = await world.start();
      await db.create('t', { splits: ['2', '4', '6', '8'] });
      const acknowledged: string[] = [];
      for (let round = 0; round < 3; round++) {
        world.fileSystem.freeBytes = 3 * MIB;
        let refused = 0;
        for (let i = 0; refused < 30; i++) {
          assert.ok(i < 1000, 'the disk is never full');
          const row = `${i % 10} of round ${round}, ${i}`;
          await db.set('t', row, 'x'.repeat(20_000)).then(
            () => acknowledged.push(row),
            (error: unknown) => {
              assert.ok(error instanceof BigtableError && error.code === Code.RESOURCE_EXHAUSTED, `${error}`);
              refused++;
            },
          );
        }
        assert.deepEqual(await db.rows('t'), [...acknowledged].sort(), 'while the disk is full');
      }
      await db.close();
      assert.deepEqual(
        world.messages.filter((message) => message.includes('ends itself')),
        [],
      );
      world.crash('nothing');
      world.fileSystem.freeBytes = 10 * MIB;
      const next = await world.start();
      assert.deepEqual(await next.rows('t'), [...acknowledged].sort(), 'after it was closed');
      await next.set('t', 'z', '1');
      await next.close();
    });
  }

  test('a tablet server that could not start leaves no files, and the next start succeeds', async () => {
    const full = new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full');
    for (const failing of ['openLog', 'appendLog', 'announce'] as const) {
      let isFull = true;
      const world = new World({
        faults: (operation) => {
          if (isFull && operation === failing) throw full;
        },
      });
      const env = await world.env();
      const open = new Set<string>();
      const lockService = new Proxy(env.lockService, {
        get: (target, name: keyof LockService) => {
          if (name === 'openSession') return async () => target.openSession().then((id) => (open.add(id), id));
          if (name === 'closeSession') return async (id: string) => target.closeSession(id).then(() => open.delete(id));
          if (name === 'write' && isFull && failing === 'announce') return () => Promise.reject(full);
          return target[name].bind(target);
        },
      });
      const settings = tabletServerSettings(checkSettings(), 1);
      const start = (): Promise<TabletServer> =>
        TabletServer.start({ env: { ...env, lockService }, address: 'one', settings });
      for (let i = 0; i < 3; i++) await rejectsWith(Code.RESOURCE_EXHAUSTED, start());
      assert.equal(open.size, 0, `${failing}: sessions are left open`);
      isFull = false;
      const server = await start();
      await server.close();
      assert.equal(open.size, 0);
    }
  });

  test('a disk that refuses an append fails the writes in it, and the server continues', async () => {
    const syncs = new Syncs();
    const { world, db } = await started(syncs, {});
    syncs.hold('appendLog');
    syncs.release();
    syncs.error = new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full');
    await rejectsWith(Code.RESOURCE_EXHAUSTED, db.set('t', 'a', '1'));
    syncs.error = undefined;
    await db.set('t', 'b', '1');
    assert.deepEqual(await db.rows('t'), ['b']);
    assert.ok(!world.messages.some((message) => message.includes('ends itself')));
    await db.close();
  });
});
