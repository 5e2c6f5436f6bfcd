/** A reader of a log of slots that keeps a memo begins close to its place, and reads what one without would read. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type Fate, unreliableSlots } from '../../../test/contracts/unreliable-slots.ts';
import { quickClock } from '../../../test/simulated-time.ts';
import { MemorySlotStore } from '../memory/memory-slot-store.ts';
import { SeededRandom } from '../memory/seeded-random.ts';
import type { LogMemo } from '../seams/file-system.ts';
import type { SlotStore } from '../seams/slot-store.ts';
import { SlotLogs } from './slot-logs.ts';

const LOG = 'logs/server';

function logsOn(store: SlotStore): SlotLogs {
  return new SlotLogs(store, { clock: quickClock(), random: new SeededRandom(1) });
}

async function positions(logs: SlotLogs, from: number, memo?: LogMemo): Promise<number[]> {
  const read: number[] = [];
  for await (const { position } of logs.readLog(LOG, from, memo)) read.push(position);
  return read;
}

describe('a memo of a log', () => {
  test('a reading at the end of a long log lists its end alone', async () => {
    const store = new MemorySlotStore({ pageSize: 10 });
    const list = store.listSlots.bind(store);
    let lists = 0;
    store.listSlots = (row, from) => {
      lists++;
      return list(row, from);
    };
    const logs = logsOn(store);
    const log = await logs.openLog(LOG);
    for (let i = 1; i <= 1000; i++) await log.append([Buffer.from(`record ${i}`)]);
    const memo: LogMemo = {};
    assert.equal((await positions(logs, 0, memo)).length, 1000);
    for (let i = 1001; i <= 1010; i++) {
      await log.append([Buffer.from(`record ${i}`)]);
      lists = 0;
      assert.deepEqual(await positions(logs, i, memo), [i]);
      assert.ok(lists <= 8, `${lists} lists`);
    }
    lists = 0;
    assert.deepEqual((await positions(logs, 500, memo)).slice(0, 2), [500, 501]);
    const whole = lists;
    lists = 0;
    await positions(logs, 500);
    assert.ok(whole < lists, `${whole} lists with a memo, and ${lists} without`);
  });

  test('readings with a memo are those without one, among appends, trims, a fence and the end of the log', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('append' as const), count: fc.integer({ min: 1, max: 30 }) }),
      fc.record({ kind: fc.constant('trim' as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
      fc.record({ kind: fc.constant('read' as const), share: fc.double({ min: 0, max: 1.1, noNaN: true }) }),
    );
    const fates = fc.array(fc.constantFrom<Fate>('answered', 'unanswered', 'failed', 'late'), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), fates, fc.boolean(), async (steps, drawn, isDeleted) => {
        const inner = new MemorySlotStore({ pageSize: 4 });
        const left = [...drawn];
        const unreliable = unreliableSlots(inner, (method) =>
          method === 'create' ? (left.pop() ?? 'answered') : 'answered',
        );
        const logs = logsOn(unreliable.store);
        const reader = logsOn(inner);
        const log = await logs.openLog(LOG);
        const memo: LogMemo = {};
        let last = 0;
        const compare = async (from: number): Promise<void> => {
          // a trim goes on after its call
          await unreliable.landAll();
          for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
          assert.deepEqual(await positions(reader, from, memo), await positions(reader, from));
        };
        for (const one of steps) {
          if (one.kind === 'append')
            for (let i = 0; i < one.count; i++) last = await log.append([Buffer.from(`record ${i}`)]);
          else if (one.kind === 'trim') await log.trimBefore(Math.max(1, Math.floor(last * one.share)));
          else await compare(Math.floor(last * one.share));
        }
        await logs.fence(LOG);
        for (const from of [0, 1, last >> 1, last, last + 1]) await compare(from);
        if (isDeleted) await logs.deleteLog(LOG);
        for (const from of [0, last]) await compare(from);
      }),
      { numRuns: 60 },
    );
  });
});
