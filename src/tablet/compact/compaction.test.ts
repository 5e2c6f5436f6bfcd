import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type ByteString, int64Bytes, readInt64BE } from '../../base/index.ts';
import type { GroupLayout, Mutation, TableSchema } from '../../model/index.ts';
import { SsTable, BlockCache } from '../../sstable/index.ts';
import { SeededRandom } from '../../env/index.ts';
import { TabletFixture, schemaOf } from '../fixtures.ts';
import { MERGED_FILES } from '../layers/merge-choice.ts';

const PLAIN = schemaOf({ f: { name: 'f' } });
const FAMILIES: TableSchema['families'] = {
  a: { name: 'a' },
  b: { name: 'b' },
  v: { name: 'v', gcRule: { kind: 'maxVersions', versions: 2 } },
  s: { name: 's', valueType: { aggregate: { kind: 'sum', input: 'int64' } } },
};
const LAYOUTS: readonly GroupLayout[] = [
  {},
  { x: { families: ['a'] } },
  { x: { families: ['a', 'v'] }, y: { families: ['s'], bloomFilter: 'row-column' } },
  { x: { families: ['b'] }, y: { families: ['a', 's'], inMemory: true } },
  { x: { families: ['v'], compression: { kind: 'none' } }, y: { families: ['b'], bloomFilter: 'none' } },
];

function withLayout(layout: GroupLayout): TableSchema {
  const families = Object.fromEntries(
    Object.values(FAMILIES).map((family) => {
      const group = Object.entries(layout).find(([, { families: own }]) => own?.includes(family.name))?.[0];
      return [family.name, group === undefined ? family : { ...family, group }];
    }),
  );
  return schemaOf(families, layout);
}

/** Cells by row, then `family:qualifier`, then timestamp: what every read must show. */
class Model {
  readonly rows = new Map<string, Map<string, Map<number, string>>>();

  apply(row: string, mutation: Mutation): void {
    const columns = this.rows.get(row) ?? new Map<string, Map<number, string>>();
    this.rows.set(row, columns);
    if (mutation.kind === 'deleteFromRow') return columns.clear();
    if (mutation.kind === 'deleteFromFamily') {
      for (const column of [...columns.keys()]) if (column.startsWith(`${mutation.family}:`)) columns.delete(column);
      return;
    }
    const column = `${mutation.family}:${mutation.qualifier}`;
    const versions = columns.get(column) ?? new Map<number, string>();
    columns.set(column, versions);
    if (mutation.kind === 'setCell')
      versions.set(Number(mutation.timestamp), Buffer.from(mutation.value).toString('latin1'));
    if (mutation.kind === 'addToCell') {
      const old = versions.get(Number(mutation.timestamp));
      const sum = Number(mutation.input) + (old === undefined ? 0 : Number(readInt64BE(Buffer.from(old, 'latin1'), 0)));
      versions.set(Number(mutation.timestamp), Buffer.from(int64Bytes(sum)).toString('latin1'));
    }
    if (mutation.kind === 'deleteFromColumn') {
      const { start = Number.NEGATIVE_INFINITY, end = Number.POSITIVE_INFINITY } = mutation.range ?? {};
      for (const at of [...versions.keys()]) if (at >= Number(start) && at < Number(end)) versions.delete(at);
    }
  }

  dropRows(start: string, end: string | undefined): void {
    for (const row of [...this.rows.keys()])
      if (row >= start && (end === undefined || row < end)) this.rows.delete(row);
  }

  cells(families = ['a', 'b', 's', 'v'], row?: string): string[] {
    const lines: string[] = [];
    for (const [key, columns] of [...this.rows].sort(([x], [y]) => (x < y ? -1 : 1))) {
      if (row !== undefined && row !== key) continue;
      for (const [column, versions] of [...columns].sort(([x], [y]) => (x < y ? -1 : 1))) {
        if (!families.includes(column[0] as string)) continue;
        const newest = [...versions].sort(([x], [y]) => y - x);
        for (const [at, value] of column.startsWith('v') ? newest.slice(0, 2) : newest)
          lines.push(`${key} ${column}@${at}=${value}`);
      }
    }
    return lines;
  }
}

type Step =
  | { readonly kind: 'mutate'; readonly row: string; readonly mutation: Mutation }
  | { readonly kind: 'drop'; readonly start: string; readonly end: string | undefined }
  | { readonly kind: 'flush' | 'merging' | 'major' | 'reload' }
  | { readonly kind: 'groups'; readonly layout: GroupLayout };

const row = fc.constantFrom('a', 'b', 'c', 'd');
const qualifier = fc.constantFrom('p', 'q');
const at = fc.integer({ min: 1, max: 5 });
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('setCell' as const),
      family: fc.constantFrom('a', 'b', 'v'),
      qualifier,
      timestamp: at,
      value: fc.string({ maxLength: 6 }).map((text) => Buffer.from(text, 'latin1')),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('addToCell' as const),
      family: fc.constant('s'),
      qualifier,
      timestamp: fc.constant(1),
      input: fc.integer({ min: -9, max: 9 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'deleteFromRow' as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('deleteFromFamily' as const),
      family: fc.constantFrom('a', 'b', 'v', 's'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('deleteFromColumn' as const),
      family: fc.constantFrom('a', 'b', 'v', 's'),
      qualifier,
    }),
  },
  // not of v: a version that becomes the newest again may be collected or not
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('deleteFromColumn' as const),
      family: fc.constantFrom('a', 'b'),
      qualifier,
      range: fc.constantFrom({ start: 2, end: 4 }, { start: 3, end: undefined }, { start: undefined, end: 3 }),
    }),
  },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 20, arbitrary: fc.record({ kind: fc.constant('mutate' as const), row, mutation }) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom<[string, string | undefined]>(['a', 'b'], ['b', 'd'], ['c', undefined])
      .map(([start, end]) => ({ kind: 'drop' as const, start, end })),
  },
  { weight: 20, arbitrary: fc.constant({ kind: 'flush' as const }) },
  { weight: 4, arbitrary: fc.constant({ kind: 'merging' as const }) },
);
const rareStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 1, arbitrary: fc.constant({ kind: 'major' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'reload' as const }) },
  { weight: 1, arbitrary: fc.constantFrom(...LAYOUTS).map((layout) => ({ kind: 'groups' as const, layout })) },
);
const steps = fc
  .record({
    often: fc.array(step, { minLength: 50, maxLength: 90, size: 'max' }),
    rare: fc.array(fc.record({ at: fc.nat(90), step: rareStep }), { maxLength: 4 }),
  })
  .map(({ often, rare }) =>
    often.flatMap((one, i) => [...rare.filter(({ at: place }) => place === i).map((each) => each.step), one]),
  );

async function take(fixture: TabletFixture, model: Model, one: Step): Promise<void> {
  switch (one.kind) {
    case 'mutate':
      model.apply(one.row, one.mutation);
      return fixture.apply(one.row, one.mutation);
    case 'drop':
      model.dropRows(one.start, one.end);
      return fixture.tablet.dropRows(fixture.context, { start: one.start, end: one.end });
    case 'groups':
      fixture.schema = withLayout(one.layout);
      return;
    case 'flush':
      return fixture.tablet.flush();
    case 'reload':
      return fixture.reload();
    case 'merging': {
      const due = fixture.tablet.dueCompaction();
      return due === undefined ? undefined : fixture.tablet.compact(due);
    }
    case 'major':
      return fixture.tablet.compact('major');
  }
}

describe('compactions', () => {
  test('whatever is flushed, merged, moved between groups and loaded again, reads show what the model shows', async () => {
    let merges = 0;
    let majors = 0;
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...LAYOUTS), steps, async (layout, all) => {
        const fixture = await new TabletFixture(withLayout(layout)).load();
        const model = new Model();
        for (const one of all) {
          await take(fixture, model, one);
          if (one.kind === 'mutate' || one.kind === 'drop' || one.kind === 'flush') continue;
          assert.deepEqual(await fixture.cells(), model.cells());
          assert.deepEqual(await fixture.cells({ kind: 'familyNameRegex', regex: 'a|s' }), model.cells(['a', 's']));
          assert.deepEqual(await fixture.cells({ kind: 'familyNameRegex', regex: 'v' }), model.cells(['v']));
          assert.deepEqual(await fixture.cellsOfRow('b'), model.cells(undefined, 'b'));
          assert.deepEqual(
            await fixture.cellsOfRow('c', { kind: 'familyNameRegex', regex: 'b' }),
            model.cells(['b'], 'c'),
          );
        }
        // at least one merge in each run: with this many overlapping files it is due
        for (let i = 0; i < MERGED_FILES && fixture.tablet.dueCompaction() === undefined; i++) {
          await take(fixture, model, {
            kind: 'mutate',
            row: 'a',
            mutation: { kind: 'setCell', family: 'b', qualifier: 'p', timestamp: 1, value: Buffer.from([i]) },
          });
          await take(fixture, model, { kind: 'flush' });
        }
        await take(fixture, model, { kind: 'merging' });
        assert.deepEqual(await fixture.cells(), model.cells());
        await fixture.tablet.compact('major');
        assert.deepEqual(await fixture.cells(), model.cells());
        await assertMajor(fixture);
        merges += fixture.env.metrics.get('tablet.mergingCompactions');
        majors += fixture.env.metrics.get('tablet.majorCompactions');
      }),
      { numRuns: 30 },
    );
    assert.ok(merges >= 30 && majors >= 30, `${merges} merging and ${majors} major compactions were tried`);
  });

  test('a merging compaction makes one file of neighbours in age, keeps deletions while older files remain, and then drops them', async () => {
    const fixture = await new TabletFixture(PLAIN).load();
    const big = Buffer.alloc(2 << 20, 7).toString('latin1');
    await fixture.set('z', big);
    await fixture.set('a', 'hidden');
    fixture.schema = schemaOf({ f: { name: 'f' } }, { default: { compression: { kind: 'none' } } });
    await fixture.tablet.flush();
    for (let i = 0; i < MERGED_FILES; i++) {
      await fixture.apply('a', { kind: 'deleteFromRow' });
      await fixture.set(`b${i}`, 'x');
      await fixture.tablet.flush();
    }
    const oldest = fixture.state.files['default']?.at(-1);
    assert.equal(fixture.tablet.dueCompaction(), 'merging');
    await fixture.tablet.compact('merging');
    assert.equal(fixture.state.files['default']?.length, 2);
    assert.equal(fixture.state.files['default']?.at(-1), oldest, 'the large file is not merged');
    assert.equal(fixture.tablet.dueCompaction(), undefined);
    assert.deepEqual(
      (await fixture.cells()).map((line) => line.slice(0, 2)),
      [...Array.from({ length: MERGED_FILES }, (_, i) => `b${i}`), 'z '],
    );
    assert.equal((await propertiesOf(fixture, fixture.state.files['default']?.[0] as string)).entries.rowDeletion, 1);
    await fixture.tablet.compact('major');
    await assertMajor(fixture);
    await fixture.assertNoOrphans();
  });

  test('files that do not overlap are not merged, and a row is sought in its own file, newer ones and those that delete it', async () => {
    const fixture = await new TabletFixture(
      schemaOf({ f: { name: 'f' } }, { default: { compression: { kind: 'none' } } }),
    ).load();
    const big = Buffer.alloc(1 << 19, 7).toString('latin1');
    const rows = Array.from({ length: MERGED_FILES + 4 }, (_, i) => [`r${10 + i}`, `r${10 + i}-`] as const);
    for (const pair of rows) {
      for (const row of pair) await fixture.set(row, big);
      await fixture.set(pair[0], 'newest', 2);
      await fixture.tablet.flush();
    }
    assert.equal(fixture.tablet.dueCompaction(), undefined);
    assert.equal(fixture.state.files['default']?.length, rows.length);
    const filesRead = (): number => fixture.env.metrics.get('tablet.filesRead');
    for (const [first, last] of rows) {
      const before = filesRead();
      assert.deepEqual(await fixture.cellsOfRow(first), [`${first} f:q@2=newest`, `${first} f:q@1=${big}`]);
      assert.deepEqual(await fixture.cellsOfRow(last), [`${last} f:q@1=${big}`]);
      assert.deepEqual(await fixture.cellsOfRow(`${last}-`), []);
      assert.ok(filesRead() - before <= 2, 'one file for each existing row');
    }
    const all = rows.flatMap(([first, last]) => [first, first, last]);
    assert.deepEqual(
      (await fixture.cells()).map((line) => line.split(' ')[0]),
      all,
    );
    assert.deepEqual(
      (await fixture.cells(undefined, undefined, true)).map((line) => line.split(' ')[0]),
      [...rows].reverse().flatMap(([first, last]) => [last, first, first]),
    );
    await fixture.tablet.dropRows(fixture.context, { start: 'r11', end: 'r13' });
    await fixture.apply('r20', { kind: 'deleteFromRow' });
    await fixture.tablet.flush();
    const left = all.filter((row) => !(row >= 'r11' && row < 'r13') && row !== 'r20');
    assert.deepEqual(
      (await fixture.cells()).map((line) => line.split(' ')[0]),
      left,
    );
    for (const row of all)
      assert.equal((await fixture.cellsOfRow(row)).length, left.filter((one) => one === row).length, row);
  });

  test('garbage is collected as reads see it, merges collect by age alone, and a dropped family is collected too', async () => {
    const rule = {
      kind: 'union',
      rules: [
        { kind: 'maxVersions', versions: 1 },
        { kind: 'maxAge', ageMicros: 1_000_000 },
      ],
    } as const;
    const fixture = await new TabletFixture(
      schemaOf({ f: { name: 'f', gcRule: rule }, gone: { name: 'gone' } }),
    ).load();
    const now = fixture.env.clock.nowMicros();
    await fixture.set('old', 'x', now - 2_000_000);
    await fixture.set('r', 'one', now - 10);
    await fixture.set('r', 'two', now - 5);
    await fixture.set('r', 'lost', 1, 'gone');
    fixture.schema = schemaOf({ f: { name: 'f', gcRule: rule } });
    await fixture.tablet.compact('major');
    const [file] = fixture.state.files['default'] ?? [];
    const { rows, entries, families } = await propertiesOf(fixture, file as string);
    assert.deepEqual([rows, entries.put, families?.map(({ family }) => family)], [1, 1, ['f']]);
    assert.deepEqual(await fixture.cells(), [`r f:q@${now - 5}=two`]);
  });

  test('versions do not count while a newer layer deletes ranges of them: visible cells stay', async () => {
    const fixture = await new TabletFixture(
      schemaOf({ f: { name: 'f', gcRule: { kind: 'maxVersions', versions: 1 } } }),
    ).load();
    for (let i = 0; i < MERGED_FILES; i++) {
      await fixture.set('r', `v${i}`, 10 + i);
      await fixture.tablet.flush();
    }
    await fixture.apply('r', {
      kind: 'deleteFromColumn',
      family: 'f',
      qualifier: 'q',
      range: { start: 14, end: undefined },
    });
    assert.deepEqual(await fixture.cells(), ['r f:q@13=v3']);
    await fixture.tablet.compact('merging');
    assert.deepEqual(await fixture.cells(), ['r f:q@13=v3']);
    assert.equal(
      (await propertiesOf(fixture, fixture.state.files['default']?.[0] as string)).entries.put,
      MERGED_FILES,
    );
    await fixture.tablet.compact('major');
    assert.deepEqual(await fixture.cells(), ['r f:q@13=v3']);
    assert.equal((await propertiesOf(fixture, fixture.state.files['default']?.[0] as string)).entries.put, 1);
  });

  test('a read opens only the files of the groups it needs', async () => {
    const fixture = await new TabletFixture(withLayout({ x: { families: ['a'] }, y: { families: ['b'] } })).load();
    for (const family of ['a', 'b', 'v']) await fixture.set('r', 'x', 1, family);
    await fixture.tablet.flush();
    assert.deepEqual(Object.keys(fixture.state.files).sort(), ['default', 'x', 'y']);
    const filesRead = async (families: string): Promise<number> => {
      const before = fixture.env.metrics.get('tablet.filesRead');
      await fixture.cells({ kind: 'familyNameRegex', regex: families });
      return fixture.env.metrics.get('tablet.filesRead') - before;
    };
    assert.deepEqual(
      [await filesRead('a'), await filesRead('a|b'), await filesRead('a|b|v'), await filesRead('s')],
      [1, 2, 3, 0],
    );
  });

  test('only the tablet’s rows are written, whatever its files hold', async () => {
    const whole = await new TabletFixture(PLAIN).load();
    for (const key of ['a', 'm', 'z']) await whole.set(key, key);
    await whole.tablet.flush();
    await whole.tablet.close({ flush: false });
    const part = new TabletFixture(PLAIN, whole.fileSystem, { start: 'b', end: 'n' });
    part.state = { ...part.state, epoch: whole.state.epoch, redo: whole.state.redo, files: whole.state.files };
    await part.load();
    await part.tablet.compact('major');
    const { firstRow, lastRow } = await propertiesOf(part, part.state.files['default']?.[0] as string);
    assert.deepEqual([firstRow, lastRow], ['m', 'm']);
    assert.equal(
      (await part.files()).length,
      2,
      'a file that was not made here may be another tablet’s too: it is left to the sweep',
    );
  });

  test('closing cancels a compaction and leaves no file of it', async () => {
    const fixture = await new TabletFixture(PLAIN).load();
    for (let i = 0; i < MERGED_FILES; i++) {
      await fixture.set(`r${i}`, 'x'.repeat(1000));
      await fixture.tablet.flush();
    }
    const compaction = fixture.tablet.compact('merging');
    await fixture.tablet.close({ flush: false });
    await assert.rejects(compaction, /cancelled/);
    await fixture.env.clock.yield();
    assert.equal((await fixture.files()).length, MERGED_FILES);
    await fixture.assertNoOrphans();
  });

  const moves: readonly (readonly [string, GroupLayout])[] = [
    ['stays moved', { x: { families: ['a'] } }],
    ['is moved back meanwhile', {}],
  ];
  for (const [what, meanwhile] of moves) {
    test(`a row deleted and flushed while a compaction moves its family stays deleted, if the family ${what}`, async () => {
      const fixture = await new TabletFixture(withLayout({})).load();
      for (const row of ['kept', 'lost', 'dropped']) await fixture.set(row, row, 1, 'a');
      await fixture.tablet.flush();
      fixture.schema = withLayout({ x: { families: ['a'] } });
      fixture.onCompaction = async () => {
        fixture.onCompaction = async () => {};
        fixture.schema = withLayout(meanwhile);
        await fixture.apply('lost', { kind: 'deleteFromRow' });
        await fixture.tablet.dropRows(fixture.context, { start: 'd', end: 'e' });
        await fixture.tablet.flush();
      };
      await fixture.tablet.compact('major');
      assert.deepEqual(await fixture.cells(), ['kept a:q@1=kept']);
      await fixture.reload();
      assert.deepEqual(await fixture.cells(), ['kept a:q@1=kept']);
      await fixture.tablet.compact('major');
      assert.deepEqual(await fixture.cells(), ['kept a:q@1=kept']);
    });
  }

  test('the files of a compaction are as old as its beginning: they keep garbage that arose since then', async () => {
    const fixture = await new TabletFixture(PLAIN).load();
    await fixture.set('r', 'v', 1);
    await fixture.tablet.flush();
    fixture.clock.advance(1000);
    const begun = fixture.clock.nowMicros();
    fixture.onCompaction = async () => fixture.clock.advance(5000);
    await fixture.tablet.compact('major');
    assert.equal(
      Number((await propertiesOf(fixture, fixture.state.files['default']?.[0] as string)).createdMicros),
      begun,
    );
    assert.equal(fixture.tablet.uncollectedSinceMicros, undefined);
  });

  test('a compaction whose rows were dropped meanwhile commits nothing', async () => {
    const fixture = await new TabletFixture(PLAIN).load();
    for (let i = 0; i < MERGED_FILES; i++) {
      await fixture.set(`r${i}`, 'x');
      await fixture.tablet.flush();
    }
    const compaction = fixture.tablet.compact('merging');
    await fixture.tablet.dropRows(fixture.context, { start: '', end: undefined });
    await Promise.all([fixture.tablet.flush(), compaction]);
    assert.deepEqual(await fixture.cells(), []);
    await fixture.reload();
    assert.deepEqual(await fixture.cells(), []);
  });
});

async function propertiesOf(fixture: TabletFixture, path: string): Promise<SsTable['properties']> {
  const table = await SsTable.open({
    ...fixture.env,
    path,
    cache: new BlockCache({ limitBytes: 1 << 20, metrics: fixture.env.metrics }),
  });
  await table.verify();
  return table.properties;
}

/** One file a group at most, in the group of its families, with no deletions and no operands. */
async function assertMajor(fixture: TabletFixture): Promise<void> {
  for (const [group, paths] of Object.entries(fixture.state.files)) {
    assert.equal(paths.length, 1);
    const { entries, families } = await propertiesOf(fixture, paths[0] as string);
    const { put, ...others } = entries;
    assert.ok(put > 0 && Object.values(others).every((count) => count === 0), JSON.stringify(entries));
    for (const { family } of families ?? []) assert.equal(fixture.schema.families[family]?.group ?? 'default', group);
  }
}

test('a file after files that did not shrink tries few of its blocks, until one shrinks', async () => {
  const fixture = await new TabletFixture(PLAIN).load();
  const { lz4 } = fixture.env.codecs;
  const { compress } = lz4;
  let tries = 0;
  Object.assign(lz4, {
    compress: (bytes: Buffer) => {
      if (bytes.length > 0) tries++;
      return compress(bytes);
    },
  });
  /** The blocks tried in a flush of 768 rows, which have a block each. */
  const triesOfFlush = async (valueOf: (i: number) => Uint8Array): Promise<number> => {
    for (let i = 0; i < 768; i++) {
      const value = valueOf(i);
      await fixture.apply(String(i), { kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1, value });
    }
    tries = 0;
    await fixture.tablet.flush();
    return tries;
  };
  const random = new SeededRandom(1);
  const noise = (): Uint8Array => Uint8Array.from({ length: 4096 }, () => 256 * random.float());
  const text = (i: number): Uint8Array => Buffer.alloc(4096, `line ${i} `);
  assert.equal(await triesOfFlush(noise), 8 + Math.floor(760 / 16));
  assert.equal(await triesOfFlush(noise), 768 / 64);
  tries = 0;
  await fixture.tablet.compact('major');
  assert.equal(tries, 768 / 64);
  await fixture.load();
  assert.equal(await triesOfFlush(text), 768);
  assert.equal(await triesOfFlush(noise), 8 + Math.floor(760 / 16));
});

test('a read inside a row sees it to its end, whatever is flushed and written meanwhile', async () => {
  const fixture = await new TabletFixture(PLAIN).load();
  const VALUE_BYTES = 2000;
  const fillRow = (row: ByteString, letter: string): Promise<void> =>
    fixture.apply(
      row,
      ...Array.from(
        { length: 1500 },
        (_, i) =>
          ({
            kind: 'setCell',
            family: 'f',
            qualifier: `q${String(i).padStart(4, '0')}`,
            timestamp: 1,
            value: Buffer.alloc(VALUE_BYTES, letter),
          }) as const,
      ),
    );
  await fillRow('a', 'a');
  const kept: Uint8Array[] = [];
  const stream = fixture.tablet.read(fixture.context, {
    ranges: [fixture.state.range],
    filter: undefined,
    rowsLimit: 0,
    reversed: false,
  });
  let pulls = 0;
  for await (const { fragments } of stream) {
    for (const { cells } of fragments) for (const { value } of cells) kept.push(value);
    if (pulls++ > 2) continue;
    await fixture.tablet.flush();
    await fillRow('b', 'b');
    await fixture.tablet.flush();
    await fillRow('b', 'c');
  }
  assert.ok(pulls > 2, `${pulls} batches`);
  assert.ok(kept.length >= 1500);
  for (const [i, value] of kept.entries())
    assert.ok(Buffer.from(value).equals(Buffer.alloc(VALUE_BYTES, i < 1500 ? 'a' : value[0])), `value ${i}`);
});
