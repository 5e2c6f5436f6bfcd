import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PROTOCOL } from '../protocol/index.ts';
import { TabletFigures } from './tablet-figures.ts';

function answer(figures: TabletFigures, atMs: number, name: string, epoch: number, requests?: number): void {
  const tablets = [{ key: 'a', epoch, sizeBytes: 7, ...(requests !== undefined && { requests }) }];
  figures.answered({ name, protocol: PROTOCOL, locked: true, tablets }, atMs);
}

describe('the load of a tablet', () => {
  test('is the rate of requests between two answers, and half of it that of the time before', () => {
    const figures = new TabletFigures();
    answer(figures, 0, 's', 1, 1000);
    assert.deepEqual([figures.get('a')?.requestRate, figures.get('a')?.sizeBytes], [0, 7]);
    answer(figures, 10_000, 's', 1, 2000);
    assert.equal(figures.get('a')?.requestRate, 50);
    answer(figures, 20_000, 's', 1, 3000);
    assert.equal(figures.get('a')?.requestRate, 75);
  });

  test('is kept when another server counts anew, or an earlier version does not count', () => {
    const figures = new TabletFigures();
    answer(figures, 0, 's', 1, 0);
    answer(figures, 10_000, 's', 1, 1000);
    answer(figures, 20_000, 'other', 2, 10);
    assert.equal(figures.get('a')?.requestRate, 50);
    answer(figures, 30_000, 'other', 3, 5);
    assert.equal(figures.get('a')?.requestRate, 50);
    answer(new TabletFigures(), 0, 's', 1);
  });

  test('is forgotten when no server has named the tablet between two looks at all', () => {
    const figures = new TabletFigures();
    answer(figures, 0, 's', 1, 0);
    figures.lookedAtAll();
    answer(figures, 1, 's', 1, 0);
    figures.lookedAtAll();
    assert.ok(figures.get('a'));
    figures.lookedAtAll();
    assert.equal(figures.get('a'), undefined);
  });
});
