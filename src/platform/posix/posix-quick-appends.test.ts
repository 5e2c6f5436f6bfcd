import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MAX_SYNCHRONOUS_BYTES, QuickAppends } from './posix-quick-appends.ts';

class Disk {
  nowMs = 100;
  appends = 0;
  readonly quick = new QuickAppends(() => this.nowMs);

  /** True if the append was synchronous. */
  append(tookMs: number, bytes = 1000): boolean {
    const isSynchronous = this.quick.allows(bytes);
    this.nowMs += tookMs;
    if (isSynchronous) this.quick.took(tookMs);
    if (isSynchronous) this.appends++;
    return isSynchronous;
  }
}

describe('synchronous appends', () => {
  test('continue as long as they are quick', () => {
    const disk = new Disk();
    for (let i = 0; i < 1000; i++) assert.equal(disk.append(0.3), true);
  });

  test('continue after single slow ones', () => {
    const disk = new Disk();
    for (let i = 0; i < 10_000; i++) assert.equal(disk.append(i % 100 === 0 ? 2 : 0.2), true);
  });

  test('are never large', () => {
    const disk = new Disk();
    assert.equal(disk.append(0.1, MAX_SYNCHRONOUS_BYTES), true);
    assert.equal(disk.append(0.1, MAX_SYNCHRONOUS_BYTES + 1), false);
    assert.equal(disk.append(0.1), true);
  });

  test('pause for a second after three slow ones in a row', () => {
    const disk = new Disk();
    for (let i = 0; i < 3; i++) assert.equal(disk.append(3), true);
    const fromMs = disk.nowMs;
    while (!disk.append(0.1)) assert.ok(disk.nowMs < fromMs + 1001);
    assert.ok(disk.nowMs >= fromMs + 1000);
    for (let i = 0; i < 1000; i++) assert.equal(disk.append(0.1), true);
  });

  test('pause after one that hangs', () => {
    const disk = new Disk();
    assert.equal(disk.append(5000), true);
    assert.equal(disk.append(5000), false);
  });

  test('pause where many are slow, and no three in a row', () => {
    const disk = new Disk();
    const fromMs = disk.nowMs;
    for (let i = 0; disk.nowMs < fromMs + 60_000; i++) disk.append(i % 3 < 2 ? 5 : 0.1);
    assert.ok(disk.appends * 5 <= 60_000 / 10 + 40, `${disk.appends} appends`);
  });

  test('are tried more and more rarely on a disk that stays slow, and often again on one that was quick', () => {
    const disk = new Disk();
    const fromMs = disk.nowMs;
    while (disk.nowMs < fromMs + 100_000) disk.append(5);
    // rests of 1, 2, 4, 8, 16, 16 … s
    assert.ok(disk.appends <= 3 * 10, `${disk.appends} appends`);
    while (!disk.append(0.1));
    for (const endMs = disk.nowMs + 100_000; disk.nowMs < endMs; ) assert.equal(disk.append(0.1), true);
    for (let i = 0; i < 3; i++) assert.equal(disk.append(5), true);
    const restFromMs = disk.nowMs;
    while (!disk.append(0.1));
    assert.ok(disk.nowMs <= restFromMs + 1001);
  });
});
