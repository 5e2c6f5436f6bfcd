import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { StorageSpace } from '../env/index.ts';
import type { TableSchema } from '../model/index.ts';
import { ChangeRetention } from './change-retention.ts';
import type { ServedTablet } from './tablet-map.ts';

const HOUR_MS = 3_600_000;
const DAY_MICROS = 86_400e6;

/** A log of appends of one byte each, by position. */
class Log {
  lowWater = 0;
  newestPosition = 0;

  get nextPosition(): number {
    return this.newestPosition + 1;
  }

  /** Appends below it were removed. */
  trimmed = 0;

  sizeBytes(from = this.lowWater): number {
    return this.newestPosition - Math.max(from, this.trimmed);
  }
}

function retentionOf(tables: readonly string[], limitBytes = 1e9, freeBytes = 0) {
  const time = { micros: 1e15 };
  const clock = { nowMicros: () => time.micros };
  const advance = (ms: number): number => (time.micros += ms * 1000);
  const log = new Log();
  const warnings: string[] = [];
  const served = tables.map((tableId) => ({ tableId }) as ServedTablet);
  const retention = new ChangeRetention({
    log,
    clock,
    logger: { warn: (message) => void warnings.push(message) },
    freeBytes,
    tablets: { all: () => served.values() },
    limitBytes,
    schemaOf: (tableId) =>
      ({ changeStream: tableId === 'plain' ? undefined : { retentionMicros: DAY_MICROS } }) as TableSchema,
  });
  /** A trim of all that no replay needs, after `appends` more. */
  const trim = (appends: number, space?: StorageSpace): number => {
    log.newestPosition += appends;
    log.trimmed = log.lowWater;
    log.lowWater = retention.keptFrom(log.newestPosition, space);
    return log.lowWater;
  };
  return { advance, served, trim, retention, log, warnings };
}

describe('the log of a server', () => {
  test('keeps less for streams where the disk has less free space than the server needs', () => {
    const { advance, trim, warnings } = retentionOf(['streamed'], 1e9, 50);
    const hour = (freeBytes: number, totalBytes = 1000): number => {
      advance(HOUR_MS);
      return trim(10, { freeBytes, totalBytes });
    };
    assert.deepEqual([hour(900), hour(200), hour(50)], [0, 0, 0]);
    assert.deepEqual(warnings, []);
    assert.equal(hour(35), 20, '15 bytes are missing, and notes are 10 apart');
    assert.equal(warnings.length, 1);
    assert.equal(hour(60), 20);
    assert.equal(hour(0), 60, 'all that no replay needs goes');
    assert.deepEqual([hour(0), hour(0)], [70, 80], 'so that the disk is as full as without a stream');
    assert.equal(hour(10, 40), 80, 'of a small disk a quarter is enough');
    assert.equal(hour(9, 40), 90);
  });

  test('keeps what the limit allows of a burst, too', () => {
    const { trim } = retentionOf(['streamed'], 1000);
    const marks = Array.from({ length: 30 }, () => trim(100));
    assert.deepEqual(marks.slice(0, 10), Array(10).fill(0));
    assert.deepEqual(
      marks.slice(10),
      Array.from({ length: 20 }, (_, i) => 100 * (i + 1)),
    );
  });

  test('does not lose more than is missing while what was to go is still there', () => {
    const { advance, trim, retention, log } = retentionOf(['streamed'], 1e9, 50);
    for (let i = 0; i < 10; i++, advance(HOUR_MS)) trim(10, { freeBytes: 900, totalBytes: 1000 });
    const space = { freeBytes: 35, totalBytes: 1000 };
    const before = log.trimmed;
    assert.equal(trim(10, space), 20);
    log.trimmed = before;
    assert.equal(retention.keptFrom(log.newestPosition, space), 20, 'the next append removes it');
    assert.equal(trim(10, space), 40, 'it was removed, and as much is missing');
  });

  test('is trimmed as far as no replay needs it where no table has a change stream', () => {
    const { trim } = retentionOf(['plain', 'plain']);
    assert.deepEqual([trim(100), trim(100)], [100, 200]);
  });

  test('has a position before each time that is kept, close to it', () => {
    const { advance, trim, retention } = retentionOf(['streamed']);
    assert.equal(retention.before(2e15), undefined, 'nothing was noted');
    /** The time and the newest append of each hour. */
    const hours: (readonly [atMicros: number, position: number])[] = [];
    for (let hour = 0; hour < 40; hour++) {
      trim(10);
      hours.push([advance(0), 10 * hour + 10]);
      advance(HOUR_MS);
    }
    for (const [atMicros, position] of hours.slice(17)) {
      assert.equal(retention.before(atMicros), position);
      assert.equal(retention.before(atMicros + 1e6), position);
      assert.equal(retention.before(atMicros - 1), position - 10);
    }
    assert.equal(retention.before(1), undefined);
  });

  test('is kept from the last trim before the first tablet of a table with a change stream, for its retention', () => {
    const { advance, served, trim } = retentionOf(['plain']);
    assert.equal(trim(100), 100);
    served.push({ tableId: 'streamed' } as ServedTablet);
    const kept: number[] = [];
    for (let hour = 0; hour < 48; hour++) {
      kept.push(trim(10));
      advance(HOUR_MS);
    }
    assert.ok(
      kept.slice(0, 24).every((position) => position === 100),
      kept.join(),
    );
    // hour 47: all of the last 24 hours, and at most an hour more
    const last = kept.at(-1)!;
    assert.ok(last <= 100 + 24 * 10 && last >= 100 + 22 * 10, `${last}`);
    // the tablet has gone, and its changes are still read from here
    served.pop();
    assert.ok(trim(10) < 500);
    advance(25 * HOUR_MS);
    assert.equal(trim(10), 600);
    assert.equal(trim(10), 610);
  });

  test('is kept within a limit of bytes: the oldest go', () => {
    const { advance, trim, log } = retentionOf(['streamed'], 50);
    for (let hour = 0; hour < 12; hour++) {
      const from = trim(10);
      assert.ok(log.newestPosition - from <= 50, `${log.newestPosition - from}`);
      advance(HOUR_MS);
    }
    assert.equal(log.lowWater, 70);
    // one append above the limit: nothing of it is kept
    assert.equal(trim(1000), 1120);
  });

  test('keeps more, not less, while the clock was set back', () => {
    const { advance, trim } = retentionOf(['streamed']);
    trim(10);
    advance(20 * HOUR_MS);
    const before = trim(10);
    advance(-10 * HOUR_MS);
    assert.equal(trim(10), before);
  });

  test('is kept from the moment at which a tablet with a change stream is about to be served', () => {
    const { trim, served, retention } = retentionOf(['plain']);
    assert.equal(trim(100), 100);
    assert.equal(retention.begin(DAY_MICROS), 101);
    // others write, and their records are in files, before it is served
    assert.equal(trim(50), 100);
    served.push({ tableId: 'streamed' } as ServedTablet);
    assert.equal(trim(50), 100);
  });

  test('keeps its newest append, whatever the limit, so that a reader sees that others are gone', () => {
    const { trim, log, retention } = retentionOf(['streamed'], 10);
    for (let i = 0; i < 5; i++) {
      trim(100);
      assert.ok(retention.keptFrom(log.nextPosition) <= log.newestPosition);
    }
  });
});
