import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../../base/index.ts';
import { type FileOperation, MemoryFileSystem } from '../../env/index.ts';
import { TabletFixture, schemaOf } from '../fixtures.ts';
import type { CompactionKind } from '../contract/compaction-job.ts';
import { MERGED_FILES } from '../layers/merge-choice.ts';

const SCHEMA = schemaOf({ a: { name: 'a', group: 'x' }, f: { name: 'f' } }, { x: {} });

/** Fails or crashes the operation of the number requested by `arm`, counted from that call. */
class Trouble {
  operations: FileOperation[] = [];
  #at = Number.POSITIVE_INFINITY;
  #act: () => void = () => {};

  readonly faults = (operation: FileOperation, path: string): void => {
    if (!path.startsWith('sstables/')) return;
    this.operations.push(operation);
    if (this.operations.length - 1 === this.#at) this.#act();
  };

  arm(at: number, act: () => void): void {
    this.operations = [];
    this.#at = at;
    this.#act = act;
  }
}

/**
 * A tablet with enough files in two groups for a merging compaction, some of them with deletions; and the cells that it
 * shows.
 */
async function prepared(trouble: Trouble): Promise<{ fixture: TabletFixture; cells: string[] }> {
  const fixture = await new TabletFixture(SCHEMA, new MemoryFileSystem({ faults: trouble.faults })).load();
  for (let i = 0; i < MERGED_FILES; i++) {
    for (const family of ['a', 'f']) await fixture.set(`row-${i}`, `${family}${i}`.repeat(200), 1, family);
    await fixture.apply(`row-${i - 2}`, { kind: 'deleteFromRow' });
    await fixture.tablet.flush();
  }
  await fixture.set('late', 'in memory');
  return { fixture, cells: await fixture.cells() };
}

/** Runs the compaction once undisturbed and returns its file operations. */
async function operationsOf(kind: CompactionKind): Promise<readonly FileOperation[]> {
  const trouble = new Trouble();
  const { fixture } = await prepared(trouble);
  trouble.arm(Number.POSITIVE_INFINITY, () => {});
  await fixture.tablet.compact(kind);
  await fixture.env.clock.yield();
  return [...trouble.operations];
}

/** Numbers of the first and the last operations of each kind. */
function firstAndLast(operations: readonly FileOperation[]): number[] {
  return [...operations.keys()].filter(
    (at) =>
      operations.indexOf(operations[at] as FileOperation) === at ||
      operations.lastIndexOf(operations[at] as FileOperation) === at,
  );
}

/** Deletes, like a sweep, all files that the row does not list and the tablet does not hold. */
async function sweep(fixture: TabletFixture): Promise<void> {
  const held = new Set([...Object.values(fixture.state.files).flat(), ...fixture.tablet.heldFiles()]);
  for (const path of await fixture.files()) if (!held.has(path)) await fixture.fileSystem.delete(path);
}

describe('compactions with faults', () => {
  for (const kind of ['merging', 'major'] as const) {
    test(`a ${kind} compaction that fails at any file operation loses nothing, leaves no file, and succeeds when it is retried`, async () => {
      const operations = await operationsOf(kind);
      assert.ok(
        operations.includes('create') && operations.includes('closeFile') && operations.includes('read'),
        operations.join(),
      );
      for (const at of firstAndLast(operations)) {
        const operation = operations[at];
        const trouble = new Trouble();
        const { fixture, cells } = await prepared(trouble);
        trouble.arm(at, () => {
          throw new BigtableError(Code.RESOURCE_EXHAUSTED, 'no space left on the device');
        });
        const failure = await fixture.tablet.compact(kind).then(
          () => undefined,
          (error: unknown) => error,
        );
        // a file that could not be deleted is left to the sweep, and is no failure of the compaction
        assert.equal(failure === undefined, operation === 'delete', `${operation}, operation ${at}`);
        assert.deepEqual(await fixture.cells(), cells);
        await fixture.tablet.compact(kind);
        assert.deepEqual(await fixture.cells(), cells);
        await sweep(fixture);
        await fixture.assertNoOrphans();
        await fixture.reload();
        assert.deepEqual(await fixture.cells(), cells);
      }
    });

    test(`the power fails at any file operation of a ${kind} compaction: the next start finds the same, and a sweep finds the remains`, async () => {
      const operations = await operationsOf(kind);
      for (const at of firstAndLast(operations)) {
        for (const choice of ['nothing', 'all'] as const) {
          const trouble = new Trouble();
          const { fixture, cells } = await prepared(trouble);
          let found: MemoryFileSystem | undefined;
          trouble.arm(at, () => {
            found ??= fixture.fileSystem.crash(choice, () => {});
          });
          await fixture.tablet.compact(kind).catch(() => {});
          assert.ok(found, `operation ${at} was not reached`);
          const next = new TabletFixture(SCHEMA, found);
          next.takeOver(fixture);
          await next.load();
          assert.deepEqual(await next.cells(), cells, `operation ${at}`);
          await sweep(next);
          await next.assertNoOrphans();
          await next.tablet.compact('major');
          assert.deepEqual(await next.cells(), cells);
        }
      }
    });
  }

  test('a commit that fails leaves the row and the files it lists, and the new files to the sweep', async () => {
    const { fixture, cells } = await prepared(new Trouble());
    const before = fixture.state.files;
    fixture.onCommit = async () => {
      throw new BigtableError(Code.UNAVAILABLE, 'METADATA is away');
    };
    await assert.rejects(fixture.tablet.compact('merging'), /METADATA is away/);
    assert.equal(fixture.state.files, before);
    assert.equal((await fixture.files()).length, MERGED_FILES * 2 + 1);
    fixture.onCommit = async () => {};
    assert.deepEqual(await fixture.cells(), cells);
    await fixture.tablet.compact('major');
    await sweep(fixture);
    await fixture.assertNoOrphans();
  });

  test('a worker that dies loses no data', async () => {
    const { fixture, cells } = await prepared(new Trouble());
    const { workers } = fixture.env;
    const run = workers.run.bind(workers);
    workers.run = async () => {
      throw new BigtableError(Code.INTERNAL, 'task "compaction": its thread died');
    };
    await assert.rejects(fixture.tablet.compact('merging'), /its thread died/);
    assert.equal(fixture.tablet.dueCompaction(), 'merging');
    workers.run = run;
    await fixture.tablet.compact('merging');
    assert.deepEqual(await fixture.cells(), cells);
    await fixture.assertNoOrphans();
  });
});

describe('a tablet that is closed without a flush', () => {
  test('waits for the flush under way, and for one that was requested meanwhile, and holds no file afterwards', async () => {
    for (let turns = 0; turns < 30; turns++) {
      let fails = false;
      const faults = async (operation: FileOperation, path: string): Promise<void> => {
        if (!fails || !path.startsWith('sstables/') || operation !== 'closeFile') return;
        for (let i = 0; i < 5; i++) await Promise.resolve();
        throw new BigtableError(Code.UNAVAILABLE, 'the storage could not be reached');
      };
      const fixture = await new TabletFixture(SCHEMA, new MemoryFileSystem({ faults })).load();
      await fixture.set('row', 'value');
      fails = true;
      const flush = fixture.tablet.flush();
      const closed = fixture.tablet.close({ flush: false });
      for (let i = 0; i < turns; i++) await Promise.resolve();
      const flushes = [flush, fixture.tablet.flush()];
      await Promise.allSettled(flushes);
      await closed;
      assert.deepEqual(fixture.tablet.heldFiles(), [], `a flush after ${turns} turns`);
    }
  });
});
