import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { commitOfMerge, commitOfSplit, judge } from './commit.ts';
import type { MetadataKey } from './keys.ts';
import { keyOfRow, type MetadataRow } from './metadata-row.ts';

const parent: MetadataRow = {
  tableId: '00000010',
  range: { start: '', end: undefined },
  server: { name: 's', address: 'a' },
  epoch: 3,
  version: 7,
  commitId: 'p',
  files: { default: ['f2', 'f1'] },
  redo: { epoch: 3, sequence: 9 },
  logs: ['l'],
};
const part = (start: string, end: string | undefined, files: readonly string[] = ['f2', 'f1']): MetadataRow => ({
  ...parent,
  range: { start, end },
  files: { default: files },
  server: undefined,
  logs: [],
  version: 1,
});
const merged = (low: MetadataRow, high: MetadataRow): MetadataRow =>
  commitOfMerge('m', 1, low, high).rows[1]?.row as MetadataRow;

describe('commits of splits and merges', () => {
  test('a split is applied once, whole, and only to the row that was seen', () => {
    const commit = commitOfSplit('id', 1, parent, [part('', 'm'), part('m', undefined)]);
    const rows = new Map<MetadataKey, MetadataRow>([[keyOfRow(parent), parent]]);
    assert.equal(
      judge(commit, (key) => rows.get(key)),
      'apply',
    );
    for (const { key, row } of commit.rows) if (row) rows.set(key, row);
    assert.deepEqual(
      [...rows.values()].map(({ range, epoch, server }) => [range.start, range.end, epoch, server?.name]),
      [
        ['m', undefined, 3, 's'],
        ['', 'm', 3, 's'],
      ],
    );
    assert.equal(
      judge(commit, (key) => rows.get(key)),
      'done',
    );
    assert.equal(
      judge(commit, (key) => (key === keyOfRow(parent) ? { ...parent, version: 8 } : undefined)),
      'refused',
    );
  });

  test('a merge takes the higher epoch and the later redo point, and each file once', () => {
    const low = { ...part('', 'm', ['a', 'f1']), epoch: 9, redo: { epoch: 9, sequence: 1 } };
    const row = merged(low, part('m', undefined, ['f2', 'f1']));
    assert.deepEqual(
      [row.range, row.epoch, row.redo, row.version],
      [{ start: '', end: undefined }, 10, { epoch: 9, sequence: 1 }, 2],
    );
    assert.deepEqual(row.files, Object.assign(Object.create(null), { default: ['a', 'f2', 'f1'] }));
    assert.deepEqual({ ...row.clips }, { a: [{ start: '', end: 'm' }], f2: [{ start: 'm', end: undefined }] });
  });

  test('a group may have the name of a property of every object, in one of the two tablets or in both', () => {
    const names = ['__proto__', 'constructor', 'toString'];
    const low = {
      ...part('', 'm'),
      files: Object.fromEntries(names.slice(0, 2).map((name) => [name, [`low ${name}`]])),
    };
    const high = {
      ...part('m', undefined),
      files: Object.fromEntries(names.slice(1).map((name) => [name, [`high ${name}`]])),
    };
    assert.deepEqual(Object.entries(merged(low, high).files), [
      ['__proto__', ['low __proto__']],
      ['constructor', ['low constructor', 'high constructor']],
      ['toString', ['high toString']],
    ]);
  });

  test('the parts for which a file is listed stay apart until they meet', () => {
    const outer = merged({ ...part('', 'g', ['f']), clips: { f: [{ start: 'c', end: 'g' }] } }, part('g', 'm', ['x']));
    const all = merged({ ...outer, version: 3 }, part('m', undefined, ['f']));
    assert.deepEqual(all.clips?.['f'], [
      { start: 'c', end: 'g' },
      { start: 'm', end: undefined },
    ]);
    assert.equal(merged(part('', 'm'), part('m', undefined)).clips, undefined);
  });

  test('both orders are kept', () => {
    const row = merged(
      part('', 'm', ['a2', 's2', 'a1', 's1']),
      part('m', undefined, ['b3', 's2', 'b2', 'b1', 's1', 'b0']),
    );
    const order = row.files['default'] as readonly string[];
    for (const list of [
      ['a2', 's2', 'a1', 's1'],
      ['b3', 's2', 'b2', 'b1', 's1', 'b0'],
    ])
      assert.deepEqual(
        order.filter((path) => list.includes(path)),
        list,
      );
    assert.equal(new Set(order).size, order.length);
  });

  test('orders that contradict one another are a bug: their newest file is unknown', () => {
    assert.throws(
      () => merged(part('', 'm', ['f2', 'f1']), part('m', undefined, ['f1', 'f2'])),
      /a merge of two tablets keeps all their files, in their order/,
    );
  });
});
