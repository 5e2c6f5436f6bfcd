/** What compactions drop by rules of garbage collection is in the log of a table with a change stream. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code } from '../../base/index.ts';
import { type LogRecord, Origin, readAppends } from '../../commitlog/index.ts';
import type { DeleteFromColumn, GcRule, Mutation, TableSchema } from '../../model/index.ts';
import { TabletFixture, schemaOf } from '../fixtures.ts';
import { MERGED_FILES } from '../layers/merge-choice.ts';

const ONE_VERSION: GcRule = { kind: 'maxVersions', versions: 1 };

function streamed(families: TableSchema['families'], groups?: TableSchema['groups']): TableSchema {
  return { ...schemaOf(families, groups), changeStream: { retentionMicros: 86_400e6 } };
}

type Change = { readonly row: string; readonly qualifier: string } & (
  | { readonly kind: 'write'; readonly at: number }
  | { readonly kind: 'erase'; readonly range: { readonly start: number; readonly end: number } | undefined }
);

const SCHEMA = streamed({ f: { name: 'f', gcRule: ONE_VERSION } });

/** All records of the logs, in order. */
async function recordsOf({ fileSystem }: TabletFixture): Promise<LogRecord[]> {
  const records: LogRecord[] = [];
  for (const path of await fileSystem.listLogs('logs/'))
    for await (const append of readAppends(fileSystem, path)) records.push(...append.records);
  return records.sort((a, b) => a.epoch - b.epoch || a.sequence - b.sequence);
}

function changesOf({ body }: LogRecord): readonly { readonly row: string; readonly mutations: readonly Mutation[] }[] {
  assert.ok(body.kind === 'rows');
  return body.rows;
}

/** The deletions by garbage collection: `row family:qualifier [start, end)`. */
async function collected(fixture: TabletFixture): Promise<string[]> {
  return (await recordsOf(fixture))
    .filter(({ origin }) => origin === Origin.garbageCollection)
    .flatMap(changesOf)
    .flatMap(({ row, mutations }) =>
      mutations.map((mutation) => {
        assert.ok(mutation.kind === 'deleteFromColumn');
        return `${row} ${textOf(mutation)}`;
      }),
    );
}

function textOf({ family, qualifier, range }: DeleteFromColumn): string {
  return `${family}:${qualifier} [${range?.start ?? ''}, ${range?.end ?? ''})`;
}

describe('versions that garbage collection drops', () => {
  test('are logged where the table has a change stream, and only there', async () => {
    for (const schema of [SCHEMA, schemaOf(SCHEMA.families)]) {
      const fixture = await new TabletFixture(schema).load();
      for (const at of [1, 2, 3]) await fixture.set('a', `v${at}`, at);
      await fixture.set('b', 'only one');
      await fixture.tablet.compact('major');
      assert.deepEqual(await collected(fixture), schema === SCHEMA ? ['a f:q [, 3)'] : []);
      await fixture.tablet.compact('major');
      assert.equal((await collected(fixture)).length, schema === SCHEMA ? 1 : 0, 'nothing is left to drop');
    }
  });

  test('are those of every locality group, and by age', async () => {
    const gcRule: GcRule = { kind: 'maxAge', ageMicros: 1000 };
    const schema = streamed(
      { f: { name: 'f', gcRule }, g: { name: 'g', group: 'x', gcRule: ONE_VERSION }, k: { name: 'k' } },
      { x: {} },
    );
    const fixture = await new TabletFixture(schema).load();
    for (const row of ['a', 'b'])
      for (const family of ['f', 'g', 'k']) for (const at of [5, 6]) await fixture.set(row, 'v', at, family);
    await fixture.tablet.compact('major');
    assert.deepEqual((await collected(fixture)).sort(), ['a f:q [, 7)', 'a g:q [, 6)', 'b f:q [, 7)', 'b g:q [, 6)']);
  });

  test('are logged once for each column, also of one that is larger than a compaction reads ahead', async () => {
    const fixture = await new TabletFixture(SCHEMA).load();
    for (const row of ['a', 'b'])
      for (let at = 1; at <= 60; at++) {
        // values that do not shrink
        await fixture.set(row, randomBytes(64 * 1024).toString('latin1'), at);
        if (at % 20 === 0) await fixture.tablet.flush();
      }
    await fixture.tablet.compact('major');
    assert.deepEqual(await collected(fixture), ['a f:q [, 60)', 'b f:q [, 60)']);
    assert.equal((await fixture.cells()).length, 2);
  });

  test('leave those alone that were written again meanwhile, also when the log is replayed', async () => {
    const fixture = await new TabletFixture(SCHEMA).load();
    for (const at of [1, 2, 3, 9]) await fixture.set('a', 'old', at);
    fixture.onCompaction = async () => {
      fixture.onCompaction = async () => {};
      await fixture.set('a', 'new', 2);
      await fixture.tablet.flush();
      await fixture.set('a', 'new', 7);
      await fixture.apply('a', { kind: 'deleteFromColumn', family: 'f', qualifier: 'q', range: { start: 8 } });
    };
    await fixture.tablet.compact('major');
    assert.deepEqual(await collected(fixture), ['a f:q [3, 4)', 'a f:q [, 2)']);
    const cells = await fixture.cells();
    assert.deepEqual(cells, ['a f:q@7=new']);
    await fixture.reload();
    assert.deepEqual(await fixture.cells(), cells);
  });

  test('change nothing when the log is replayed', async () => {
    const fixture = await new TabletFixture(SCHEMA).load();
    for (const at of [1, 2]) await fixture.set('a', 'old', at);
    await fixture.tablet.flush();
    fixture.onCommit = async () => {
      fixture.onCommit = async () => {};
      // the version that was logged as dropped is written once more, and is the newest one now
      await fixture.apply('a', { kind: 'deleteFromRow' });
      await fixture.set('a', 'new', 1);
    };
    await fixture.tablet.compact('major');
    assert.deepEqual(await collected(fixture), ['a f:q [, 2)']);
    await fixture.reload();
    assert.deepEqual(await fixture.cells(), ['a f:q@1=new']);
  });

  test('come in batches and in records of limited size, each once', async () => {
    const fixture = await new TabletFixture(SCHEMA).load();
    const columns = 13_000;
    for (const row of ['a', 'b'])
      for (const at of [1, 2])
        for (let from = 0; from < columns; from += 1000)
          await fixture.apply(
            row,
            ...Array.from({ length: 1000 }, (_, i): Mutation => {
              const qualifier = String(from + i).padStart(6, '0');
              return { kind: 'setCell', family: 'f', qualifier, timestamp: at, value: Buffer.of(at) };
            }),
          );
    let tasks = 0;
    fixture.onCompaction = async () => void tasks++;
    await fixture.tablet.compact('major');
    assert.equal(tasks, 3);
    const all = await collected(fixture);
    assert.equal(all.length, 2 * columns);
    assert.equal(new Set(all).size, 2 * columns);
    for (const record of await recordsOf(fixture))
      if (record.origin === Origin.garbageCollection)
        assert.ok(changesOf(record).reduce((sum, { mutations }) => sum + mutations.length, 0) <= 256);
  });

  test('are not logged again by a compaction that failed after that', async () => {
    const fixture = await new TabletFixture(SCHEMA).load();
    for (const row of ['a', 'b']) for (const at of [1, 2]) await fixture.set(row, 'v', at);
    await fixture.tablet.flush();
    const failing = async (): Promise<void> => {
      throw new BigtableError(Code.UNAVAILABLE, 'the commit failed');
    };
    for (let i = 0; i < 3; i++) {
      fixture.clock.advance(1000);
      await fixture.set('c', 'newer', 10 + i);
      await fixture.tablet.flush();
      fixture.onCommit = failing;
      await assert.rejects(fixture.tablet.compact('major'), /the commit failed/);
      fixture.onCommit = async () => {};
    }
    assert.deepEqual(await collected(fixture), ['a f:q [, 2)', 'b f:q [, 2)']);
    await fixture.tablet.compact('major');
    // one file is left of all, those included that are newer than the failed one
    assert.equal(Object.values(fixture.state.files).flat().length, 1);
    assert.deepEqual(await collected(fixture), ['a f:q [, 2)', 'b f:q [, 2)', 'c f:q [, 12)']);
  });

  test('make the same table once more (property)', async () => {
    const rows = fc.constantFrom('a', 'b', 'c');
    const qualifiers = fc.constantFrom('p', 'q');
    const times = fc.integer({ min: 1, max: 5 });
    const write = fc.record({ kind: fc.constant('write' as const), row: rows, qualifier: qualifiers, at: times });
    const erase = fc.record({
      kind: fc.constant('erase' as const),
      row: rows,
      qualifier: qualifiers,
      range: fc.option(fc.record({ start: times, end: fc.constant(6) }), { nil: undefined }),
    });
    const change = fc.oneof({ arbitrary: write, weight: 4 }, { arbitrary: erase, weight: 1 });
    const step = fc.oneof(
      { arbitrary: change, weight: 8 },
      { arbitrary: fc.constant({ kind: 'flush' as const }), weight: 2 },
      {
        arbitrary: fc.record({
          kind: fc.constantFrom('major' as const, 'merging' as const),
          meanwhile: fc.array(change, { maxLength: 4 }),
          late: fc.array(change, { maxLength: 2 }),
          flushes: fc.boolean(),
          fails: fc.boolean(),
        }),
        weight: 2,
      },
      { arbitrary: fc.constant({ kind: 'reload' as const }), weight: 1 },
    );
    let dropped = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
        const fixture = await new TabletFixture(SCHEMA).load();
        let writes = 0;
        const apply = (one: Change): Promise<void> => {
          const { row, qualifier } = one;
          if (one.kind === 'write') return fixture.set(row, String(++writes), one.at, 'f', qualifier);
          return fixture.apply(row, { kind: 'deleteFromColumn', family: 'f', qualifier, range: one.range });
        };
        for (const one of steps) {
          if (one.kind === 'write' || one.kind === 'erase') await apply(one);
          else if (one.kind === 'flush') await fixture.tablet.flush();
          else if (one.kind === 'reload') await fixture.reload();
          else {
            if (one.kind === 'merging')
              for (let i = 0; i < MERGED_FILES; i++)
                await fixture.set('d', String(i), 1, 'f', 'q').then(() => fixture.tablet.flush());
            const { meanwhile, late, flushes, fails } = one;
            fixture.onCompaction = async () => {
              for (const other of meanwhile.splice(0)) await apply(other);
              if (flushes) await fixture.tablet.flush();
            };
            await fixture.tablet.flush();
            fixture.onCommit = async () => {
              for (const other of late.splice(0)) await apply(other);
              if (fails) throw new BigtableError(Code.UNAVAILABLE, 'the commit failed');
            };
            let isLost = false;
            await fixture.tablet.compact(one.kind).catch(() => (isLost = true));
            assert.ok(!isLost || fails);
            fixture.onCompaction = async () => {};
            fixture.onCommit = async () => {};
            if (isLost) await fixture.reload();
          }
        }
        await fixture.tablet.compact('major');
        const copy = await new TabletFixture(schemaOf({ f: { name: 'f' } })).load();
        for (const record of await recordsOf(fixture)) {
          if (record.origin === Origin.garbageCollection) dropped++;
          for (const { row, mutations } of changesOf(record)) await copy.apply(row, ...mutations);
        }
        assert.deepEqual(await copy.cells(), await fixture.cells());
      }),
      { numRuns: 60, includeErrorInReport: true },
    );
    assert.ok(dropped > 100, `${dropped} records of garbage collection`);
  });
});
