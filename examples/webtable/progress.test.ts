import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noCounts } from './loader.ts';
import { megabytes, Progress } from './progress.ts';

const TOTAL = { pages: 200, bytes: 4_000_000 };

function progressOn(isTTY: boolean) {
  const written: string[] = [];
  let now = 5000;
  const progress = new Progress({ isTTY, write: (text) => written.push(text) }, () => now);
  const at = (ms: number, pages: number) => {
    now = 5000 + ms;
    progress.update({ ...noCounts(), pages, bytes: pages * 20_000 }, TOTAL);
  };
  return { progress, written, at };
}

test('elsewhere than on a terminal: a line every second', () => {
  const { written, at, progress } = progressOn(false);
  for (const ms of [1, 500, 999, 1000, 1001, 1999, 2500]) at(ms, ms / 25);
  assert.deepEqual(written, [
    ' 20 %  40 of 200 pages  0.8 MB of 4.0 MB  40 pages/s\n',
    ' 50 %  100 of 200 pages  2.0 MB of 4.0 MB  40 pages/s\n',
  ]);
  assert.equal(progress.finish(), 2.5);
  assert.equal(written.length, 2);
});

test('on a terminal: one line, written over and cleared at the end', () => {
  const { written, at, progress } = progressOn(true);
  for (const ms of [50, 100, 150, 200]) at(ms, 100);
  progress.finish();
  assert.equal(written.length, 3);
  assert.ok(written.every((text) => text.startsWith('\r\x1b[2K') && !text.includes('\n')));
  assert.equal(written.at(-1), '\r\x1b[2K');
});

test('megabytes are millions of bytes', () => {
  assert.equal(megabytes(12_549_999), '12.5 MB');
});
