import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { QuickReads } from './posix-quick-reads.ts';

class Disk {
  nowMs = 100;
  reads = 0;
  /** What the system says. */
  counted = 0;
  readonly quick = new QuickReads(
    () => this.nowMs,
    () => this.counted,
  );

  read(tookMs: number, preparedMs = 0): boolean {
    const prepare = (): number => (this.nowMs += preparedMs);
    return (
      this.quick.run(prepare, () => {
        this.nowMs += tookMs;
        this.reads++;
        return true;
      }) === true
    );
  }
}

describe('synchronous reads', () => {
  test('continue as long as they are quick', () => {
    const disk = new Disk();
    for (let i = 0; i < 1000; i++) assert.equal(disk.read(0.05), true);
    assert.equal(disk.reads, 1000);
  });

  test('continue after a few slow ones', () => {
    const disk = new Disk();
    for (let i = 0; i < 1000; i++) {
      assert.equal(disk.read(i % 100 === 0 ? 2 : 0.02), true);
      disk.nowMs += 1;
    }
  });

  test('pause after a very slow one until it has taken no more than its share', () => {
    const disk = new Disk();
    assert.equal(disk.read(120), true);
    assert.equal(disk.read(0), false);
    disk.nowMs += 20 * 99;
    assert.equal(disk.read(0), false);
    disk.nowMs += 40;
    assert.equal(disk.read(0), true);
    assert.equal(disk.reads, 2);
  });

  test('take at most a twentieth of the time, and a short burst, where every one is slow', () => {
    const disk = new Disk();
    const startMs = disk.nowMs;
    while (disk.nowMs < startMs + 10_000) if (!disk.read(3)) disk.nowMs += 0.5;
    assert.ok(disk.reads * 3 <= (disk.nowMs - startMs) / 20 + 20 + 3, `${disk.reads} reads`);
    assert.ok(disk.reads > 100);
  });

  test('continue where their memory takes the time, and not the disk', () => {
    const disk = new Disk();
    for (let i = 0; i < 1000; i++) assert.equal(disk.read(0.05, 0.5), true);
  });

  test('count a quarter where another thread had the processor, and the disk was not read', () => {
    const disk = new Disk();
    disk.counted = 8;
    assert.equal(disk.read(10), true);
    for (let i = 0; i < 1000; i++) {
      disk.nowMs += 60;
      assert.equal(disk.read(10), true);
    }
    const startMs = disk.nowMs;
    let slowMs = 0;
    while (disk.nowMs < startMs + 10_000) {
      if (disk.read(3)) slowMs += 3;
      else disk.nowMs += 0.5;
    }
    assert.ok(slowMs <= (disk.nowMs - startMs) / 5 + 80 + 3, `${slowMs} ms`);
    while (disk.nowMs < startMs + 20_000) {
      disk.counted += 8;
      if (!disk.read(3)) disk.nowMs += 0.5;
      else slowMs += 3;
    }
    assert.ok(slowMs <= (disk.nowMs - startMs) / 8 + 100, `${slowMs} ms`);
  });

  test('are timed where they fail, too', () => {
    const disk = new Disk();
    assert.throws(
      () =>
        disk.quick.run(
          () => {},
          () => {
            disk.nowMs += 50;
            throw new Error('EIO');
          },
        ),
      /EIO/,
    );
    assert.equal(disk.read(0), false);
  });
});
