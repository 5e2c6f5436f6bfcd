/** Sweeps: garbage is deleted several files at a time, the largest first. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { inSimulatedTime } from '../../test/simulated-time.ts';
import { unavailable } from '../base/index.ts';
import { ManualClock } from '../env/index.ts';
import { keepAlive, World } from './fixtures.ts';

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

const GARBAGE = Array.from({ length: 100 }, (_, i) => `sstables/garbage-${i}`);

describe('a sweep', () => {
  test('deletes the largest files first, and the others after a failure the next time', async () => {
    const clock = new ManualClock();
    const deleted: string[] = [];
    let fails = true;
    const world = new World({
      clock,
      faults: (operation, path) => {
        if (operation !== 'delete' || !GARBAGE.includes(path)) return;
        deleted.push(path);
        if (fails && deleted.length === 40) throw unavailable('the store is away');
      },
    });
    await inSimulatedTime(
      clock,
      (async () => {
        const db = await world.start();
        await db.create('t');
        await db.set('t', 'a', '1');
        await db.database.flush();
        for (const [i, path] of GARBAGE.entries()) {
          const writer = await world.fileSystem.create(path);
          await writer.append(Buffer.alloc((i * 37) % 100));
          await writer.close();
        }
        await assert.rejects(db.database.sweep(), /the store is away/);
        assert.ok(deleted.length >= 40 && deleted.length < 80, `${deleted.length}`);
        fails = false;
        const { files } = await db.database.sweep();
        assert.ok(files >= 20 && files <= 61, `${files}`);
        const sizes = [...new Set(deleted)].map((path) => (GARBAGE.indexOf(path) * 37) % 100);
        assert.deepEqual(
          sizes,
          [...sizes].sort((a, b) => b - a),
        );
        assert.equal(sizes.length, GARBAGE.length);
        assert.deepEqual(await db.rows('t'), ['a']);
        await db.close();
      })(),
    );
  });
});
