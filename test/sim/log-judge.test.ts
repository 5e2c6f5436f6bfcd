import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LogJudge } from '../../sim/world/log-judge.ts';
import { unavailable } from '../../src/base/index.ts';
import type { SortedIndex } from '../../src/commitlog/index.ts';
import { ManualClock, MemoryFileSystem, MemorySlotStore, SeededRandom, withSlotLogs } from '../../src/env/index.ts';

const LOG = 'logs/server';
const ROW = `${LOG}/a`;
const SERVER = 'server-1.1';

const OTHER_ROW = `${LOG}/b`;

/** The bytes of the slots of a row of a log with `appends` appends, all of them in the first row, and then a marker. */
async function slotsOf(appends: number, row = ROW): Promise<Buffer[]> {
  const store = new MemorySlotStore();
  const logs = withSlotLogs(new MemoryFileSystem(), store, { clock: new ManualClock(), random: new SeededRandom(1) });
  const log = await logs.openLog(LOG);
  for (let i = 1; i <= appends; i++) await log.append([Buffer.from(`record ${i}`)]);
  await logs.fence(LOG);
  const { slots } = await store.listSlots(row, 0);
  return Promise.all(slots.map(async (slot) => (await store.read(row, slot, 0, 1000))!));
}

/** A judge that has seen a log of 3 appends, and its fence in slot 4 of the first row. */
async function fenced(): Promise<{ judge: LogJudge; late: (slot: number) => Promise<void> }> {
  const judge = new LogJudge();
  for (const [slot, bytes] of (await slotsOf(3, OTHER_ROW)).entries()) judge.created(OTHER_ROW, slot, bytes);
  for (const [slot, bytes] of (await slotsOf(3)).entries()) {
    judge.created(ROW, slot, bytes);
    if (slot > 0 && slot < 4) judge.acknowledged(LOG, slot);
  }
  const longer = await slotsOf(9);
  return { judge, late: async (slot) => judge.created(ROW, slot, longer[slot]!) };
}

function append(position: number, text: string): { position: number; bytes: Buffer } {
  return { position, bytes: Buffer.from(text) };
}

describe('the judge of logs', () => {
  test('accepts what is right', async () => {
    const { judge, late } = await fenced();
    for (const by of [SERVER, 'server-2.1']) {
      for (const position of [1, 2, 3]) judge.appendRead(LOG, append(position, `record ${position}`));
      judge.replayed(LOG, { from: 0, last: 3 }, by, true);
    }
    // a repetition that lands after a trim
    judge.deleted(ROW, [1]);
    await late(1);
    // what comes after the log was deleted whole
    judge.deleted(ROW, [0, 1, 2, 3, 4]);
    judge.deleted(OTHER_ROW, [0, 1]);
    await late(4);
    assert.deepEqual([...judge.appendsOf(LOG)], [], 'a log that was deleted has no appends');
    assert.equal(judge.violation, undefined);
    assert.deepEqual(judge.counts, { fences: 2, holeFences: 0, replays: 2, appends: 3, twice: 1, sortedParts: 0 });
  });

  test('accepts a sorted part with all appends of a fenced log, and no other', async () => {
    const part = (from: number, to: number | undefined, appends: number): SortedIndex => {
      const order = {
        appends,
        firstPrevious: 0,
        end: 0,
        firstSequence: 0,
        nextSequence: 0,
        missingBefore: 0,
        lowWater: 0,
      };
      return { log: LOG, from, to, order, blocks: [] };
    };
    const { judge } = await fenced();
    for (const [from, to, appends] of [
      [0, undefined, 3],
      [0, 2, 1],
      [2, 4, 2],
      [4, undefined, 0],
    ] as const)
      judge.sorted(part(from, to, appends), SERVER);
    assert.equal(judge.violation, undefined);
    judge.sorted(part(0, 3, 1), SERVER);
    assert.match(judge.violation ?? '', /has sorted 1 appends from 0 to 3, of 2/);
    const open = new LogJudge();
    for (const [slot, bytes] of (await slotsOf(2)).slice(0, 3).entries()) open.created(ROW, slot, bytes);
    open.sorted(part(0, undefined, 3), SERVER);
    assert.match(open.violation ?? '', /is not fenced/);
  });

  test('a marker in a slot that was trimmed is no fence', async () => {
    const judge = new LogJudge();
    for (const [slot, bytes] of (await slotsOf(5)).slice(0, 6).entries()) judge.created(ROW, slot, bytes);
    judge.deleted(ROW, [1, 2, 3]);
    judge.created(ROW, 2, (await slotsOf(1))[2]!);
    judge.created(ROW, 6, (await slotsOf(6))[6]!);
    judge.acknowledged(LOG, 6);
    assert.equal(judge.violation, undefined);
    assert.equal(judge.counts.holeFences, 1);
  });

  test('appends behind the last that was acknowledged have failed once one has', async () => {
    const { judge } = await fenced();
    assert.equal(judge.hasFailed(LOG, 4), false);
    judge.failed(LOG, unavailable('the log is full'));
    assert.deepEqual(
      [3, 4].map((position) => judge.hasFailed(LOG, position)),
      [false, true],
    );
  });

  test('finds a slot behind the fence', async () => {
    const { judge, late } = await fenced();
    await late(5);
    assert.match(judge.violation!, /slot 5 was created behind the FENCE in slot 4/);
  });

  test('finds a slot that is skipped, and a writer that meets another one', async () => {
    const judge = new LogJudge();
    const slots = await slotsOf(3);
    judge.created(ROW, 0, slots[0]!);
    judge.created(ROW, 2, slots[2]!);
    assert.match(judge.violation!, /slot 2 was created after slot 0, with none between them/);
    const other = new LogJudge();
    other.failed(LOG, unavailable('the log is fenced'));
    assert.equal(other.violation, undefined);
    other.failed(LOG, unavailable('slot 3 was written by another writer'));
    assert.match(other.violation!, /has taken its own slot for another's/);
  });

  test('finds an append that is acknowledged and is in no slot', async () => {
    const { judge } = await fenced();
    judge.acknowledged(LOG, 5);
    assert.match(judge.violation!, /append 5 was acknowledged, and is not in the log/);
  });

  test('a log may be read before it is fenced', async () => {
    const judge = new LogJudge();
    for (const [slot, bytes] of (await slotsOf(2)).entries()) judge.created(ROW, slot, bytes);
    judge.replayed(LOG, { from: 0, last: 1 }, SERVER, judge.isSealed(LOG));
    assert.equal(judge.violation, undefined);
  });

  test('finds replays that differ, fall short, or read other bytes', async () => {
    const short = (await fenced()).judge;
    short.replayed(LOG, { from: 0, last: 2 }, SERVER, true);
    assert.match(short.violation!, /has read all to 2, and not append 3/);
    const after = (await fenced()).judge;
    after.replayed(LOG, { from: 4, last: 0 }, SERVER, true);
    assert.equal(after.violation, undefined, 'nothing is there or above');
    const other = (await fenced()).judge;
    other.appendRead(LOG, append(2, 'a'));
    other.appendRead(LOG, append(2, 'b'));
    assert.match(other.violation!, /append 2 has changed/);
  });
});
