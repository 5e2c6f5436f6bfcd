import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code } from '../../base/index.ts';
import { type FileFaults, MemoryFileSystem } from '../../env/index.ts';
import type { Mutation, ReadModifyWriteRule } from '../../model/index.ts';
import { TabletFixture, schemaOf } from '../fixtures.ts';
import { ReadFamilies } from '../read/read-families.ts';

const SCHEMA = schemaOf({ f: { name: 'f' } });

const set = (value: number): Mutation => ({
  kind: 'setCell',
  family: 'f',
  qualifier: 'q',
  timestamp: value,
  value: Buffer.from(String(value)),
});
const append = (value: number): ReadModifyWriteRule => ({
  family: 'f',
  qualifier: 'r',
  change: { kind: 'append', suffix: Buffer.from(String(value)) },
});
const wide = (value: number): Mutation[] =>
  Array.from({ length: 2001 }, (_, i) => ({ ...set(value), qualifier: `w${i % 3}` }) as Mutation);

type Write = readonly ['set' | 'append' | 'check' | 'batch' | 'wide' | 'drop' | 'transact' | 'flush' | 'pause', string];

const writes = fc.array(
  fc.tuple(
    fc.constantFrom('set', 'append', 'check', 'batch', 'wide', 'drop', 'transact', 'flush', 'pause'),
    fc.constantFrom('a', 'b', 'c'),
  ),
  {
    minLength: 1,
    maxLength: 25,
  },
) as fc.Arbitrary<Write[]>;

/** Begins the write and does not wait for it. */
function begin({ tablet, context }: TabletFixture, [kind, row]: Write, i: number): Promise<unknown> {
  switch (kind) {
    case 'set':
      return tablet.mutateRow(context, row, [set(i)]);
    case 'append':
      return tablet.readModifyWriteRow(context, row, [append(i)]);
    case 'check':
      return tablet.checkAndMutateRow(context, row, undefined, [{ kind: 'deleteFromRow' }], [set(i)]);
    case 'batch':
      return tablet.mutateRows(
        context,
        ['a', row, 'c'].map((each) => ({ row: each, mutations: [set(i)] })),
      );
    case 'wide':
      return tablet.mutateRow(context, row, wide(i));
    case 'drop':
      return tablet.dropRows(context, { start: row, end: `${row}\0` });
    case 'transact':
      return tablet.transact(
        context,
        [row, 'a'],
        undefined,
        (cells) => new Map([[row, [set(cells.get('a')?.length ?? 0)]]]),
      );
    case 'flush':
      return tablet.flush();
    case 'pause':
      return new Promise((resolve) => setImmediate(resolve));
  }
}

describe('the write path of a tablet', () => {
  test('replay of the log restores what concurrent writes of all kinds left in memory', async () => {
    await fc.assert(
      fc.asyncProperty(writes, async (all) => {
        const fixture = await new TabletFixture(SCHEMA).load();
        const begun: Promise<unknown>[] = [];
        for (const [i, write] of all.entries()) {
          const done = begin(fixture, write, i);
          begun.push(done);
          if (write[0] === 'pause') await done;
        }
        await Promise.all(begun);
        const inMemory = await fixture.cells();
        await fixture.reload();
        assert.deepEqual(await fixture.cells(), inMemory);
      }),
      { numRuns: 60 },
    );
  });

  test('writes that share an append are acknowledged by one promise', async () => {
    const { tablet, context } = await new TabletFixture(SCHEMA).load();
    const [first, second] = [tablet.mutateRow(context, 'a', [set(1)]), tablet.mutateRow(context, 'b', [set(2)])];
    assert.equal(first, second);
    await first;
    assert.notEqual(tablet.mutateRow(context, 'a', [set(3)]), first);
  });

  test('an append that is refused fails its own writes only, and unlocks their rows', async () => {
    let full = false;
    const faults: FileFaults = (operation) => {
      if (full && operation === 'appendLog') throw new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full');
    };
    const fixture = await new TabletFixture(SCHEMA, new MemoryFileSystem({ faults })).load();
    const { tablet, context } = fixture;
    full = true;
    const refused = [
      tablet.mutateRow(context, 'a', [set(1)]),
      tablet.readModifyWriteRow(context, 'b', [append(1)]),
      tablet.mutateRow(context, 'c', wide(1)),
      tablet.mutateRows(context, [{ row: 'd', mutations: [set(1)] }]).then(([error]) => Promise.reject(error)),
    ];
    for (const each of refused) await assert.rejects(each, { code: Code.RESOURCE_EXHAUSTED });
    full = false;
    await tablet.dropRows(context, { start: '', end: undefined });
    await tablet.readModifyWriteRow(context, 'a', [append(2)]);
    assert.equal((await fixture.cells()).length, 1);
    await tablet.close({ flush: false });
  });

  test('a write to a row that is held waits for it, in its turn', async () => {
    const fixture = await new TabletFixture(SCHEMA).load();
    const { tablet, context } = fixture;
    const one = tablet.readModifyWriteRow(context, 'a', [append(1)]);
    const two = tablet.mutateRow(context, 'a', [{ kind: 'deleteFromRow' }]);
    const three = tablet.readModifyWriteRow(context, 'a', [append(3)]);
    assert.equal(Buffer.from((await one)[0]?.value ?? []).toString(), '1');
    await two;
    assert.equal(Buffer.from((await three)[0]?.value ?? []).toString(), '3');
  });
});

describe('the families of a read', () => {
  const at = (micros: number): { nowMicros(): number } => ({ nowMicros: () => micros });

  test('are made once for each schema if no rule depends on the time', () => {
    assert.equal(ReadFamilies.of(SCHEMA, at(1)), ReadFamilies.of(SCHEMA, at(2)));
    const union = {
      kind: 'union',
      rules: [
        { kind: 'maxVersions', versions: 2 },
        { kind: 'maxAge', ageMicros: 10 },
      ],
    } as const;
    const aged = schemaOf({ f: { name: 'f', gcRule: union } });
    assert.equal(ReadFamilies.of(aged, at(100)).get('f')?.keeps(0, 95), true);
    assert.equal(ReadFamilies.of(aged, at(200)).get('f')?.keeps(0, 95), false);
  });
});
