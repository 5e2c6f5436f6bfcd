import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Memtable } from '../../memtable/index.ts';
import type { Layer } from '../../model/index.ts';
import { LOOKUP_MICROS, ReadCredits, SCANNED_ROW_MICROS } from './read-credits.ts';
import type { TabletFile } from './tablet-file.ts';

/** The part of a file that credits are given to. */
const fileOf = (group: string): TabletFile => ({ group }) as unknown as TabletFile;
const read = (...layers: readonly Layer[]): { readonly layer: Layer }[] => layers.map((layer) => ({ layer }));
const totalOf = (credits: ReadCredits, files: readonly TabletFile[]): number =>
  credits.among(files).reduce((sum, { micros }) => sum + micros, 0);
const isClose = (actual: number, expected: number, within: number): void =>
  assert.ok(Math.abs(actual - expected) <= within, `${actual} instead of ${expected}`);

/** More than is added up before layers are credited. */
const MARGIN_MICROS = 200;

describe('the credits of reads', () => {
  test('a look-up and a scanned row earn by each layer after the first', () => {
    const [a, b, c] = [fileOf('x'), fileOf('x'), fileOf('x')];
    const credits = new ReadCredits();
    for (let i = 0; i < 10_000; i++) credits.lookedUp([a, b, c]);
    isClose(totalOf(credits, [a, b, c]), 20_000 * LOOKUP_MICROS, MARGIN_MICROS);
    const pairs = credits.among([a, b, c]).map(({ newer, older }) => [newer, older]);
    assert.deepEqual(pairs, [
      [0, 1],
      [1, 2],
    ]);
    const scans = new ReadCredits();
    for (let i = 0; i < 10_000; i++) scans.scanned(read(a, c));
    isClose(totalOf(scans, [a, b, c]), 10_000 * SCANNED_ROW_MICROS, MARGIN_MICROS);
    assert.deepEqual(
      scans.among([a, b, c]).map(({ newer, older }) => [newer, older]),
      [[0, 2]],
    );
  });

  test('layers of different groups earn nothing together', () => {
    const [a, b, c] = [fileOf('x'), fileOf('y'), fileOf('x')];
    const credits = new ReadCredits();
    for (let i = 0; i < 1000; i++) credits.lookedUp([a, b]);
    assert.equal(totalOf(credits, [a, b]), 0);
    for (let i = 0; i < 1000; i++) credits.lookedUp([a, b, c]);
    assert.deepEqual(
      credits.among([a, c]).map(({ newer, older }) => [newer, older]),
      [[0, 1]],
    );
    isClose(totalOf(credits, [a, c]), 1000 * LOOKUP_MICROS, MARGIN_MICROS);
  });

  test('a memtable over files earns by itself, until it is flushed', () => {
    const [memtable, file] = [new Memtable(), fileOf('x')];
    const credits = new ReadCredits();
    for (let i = 0; i < 1000; i++) credits.lookedUp([memtable, file]);
    isClose(credits.memtableMicros, 1000 * LOOKUP_MICROS, MARGIN_MICROS);
    assert.equal(totalOf(credits, [file]), 0);
    credits.spendMemtable();
    assert.equal(credits.memtableMicros, 0);
  });

  test('is spent by a merge for its own files only, and lost with files that go', () => {
    const files = [fileOf('x'), fileOf('x'), fileOf('x')] as const;
    const [a, b, c] = files;
    const credits = new ReadCredits();
    for (let i = 0; i < 1000; i++) credits.lookedUp([a, b, c]);
    credits.spend([a, b]);
    assert.deepEqual(
      credits.among(files).map(({ newer, older }) => [newer, older]),
      [[1, 2]],
    );
    credits.keep([a, c]);
    assert.deepEqual(credits.among(files), []);
  });

  test('the owner is notified after a read, not during one, and again only after more reads', () => {
    const [a, b] = [fileOf('x'), fileOf('x')];
    let calls = 0;
    const credits = new ReadCredits(() => calls++);
    credits.readEnded();
    for (let i = 0; i < 10_000; i++) credits.lookedUp([a, b]);
    assert.equal(calls, 0);
    credits.readEnded();
    credits.readEnded();
    assert.equal(calls, 1);
    for (let i = 0; i < 10_000; i++) credits.lookedUp([a, b]);
    credits.readEnded();
    assert.equal(calls, 2);
  });

  test('no more is credited than reads have earned, whichever rows are credited', () => {
    const files = [fileOf('x'), fileOf('y'), fileOf('x'), fileOf('x')];
    const layers = fc.subarray<Layer>([new Memtable(), ...files], { minLength: 1 });
    fc.assert(
      fc.property(fc.array(fc.record({ layers, scans: fc.boolean(), times: fc.nat(300) })), (reads) => {
        const credits = new ReadCredits();
        let earned = 0;
        for (const { layers, scans, times } of reads) {
          for (let i = 0; i < times; i++) {
            if (scans) credits.scanned(read(...layers));
            else credits.lookedUp(layers);
            earned += (layers.length - 1) * (scans ? SCANNED_ROW_MICROS : LOOKUP_MICROS);
          }
        }
        assert.ok(totalOf(credits, files) + credits.memtableMicros <= earned + 1e-6);
      }),
    );
  });
});
