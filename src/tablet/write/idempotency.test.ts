import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { ByteString } from '../../base/index.ts';
import { type Mutation, TOKEN_GROUP, TOKEN_MS } from '../../model/index.ts';
import { schemaOf, TabletFixture } from '../fixtures.ts';

const SCHEMA = schemaOf({
  f: { name: 'f' },
  sum: { name: 'sum', valueType: { aggregate: { kind: 'sum', input: 'int64' } } },
});
const add = (input: number): Mutation => ({ kind: 'addToCell', family: 'sum', qualifier: 'n', timestamp: 0, input });
const TOKEN = 'token-01';

class Counting extends TabletFixture {
  constructor() {
    super(SCHEMA);
  }

  once(row: ByteString, token: ByteString, ...mutations: readonly Mutation[]): Promise<void> {
    return this.tablet.mutateRow(this.context, row, mutations.length > 0 ? mutations : [add(1)], { token });
  }

  async countOf(row: ByteString): Promise<number> {
    const [cell] = await this.cellsOfRow(row, { kind: 'familyNameRegex', regex: 'sum' });
    return cell === undefined ? 0 : Number(Buffer.from(cell.slice(cell.indexOf('=') + 1), 'latin1').readBigInt64BE());
  }
}

const opened = (): Promise<Counting> => new Counting().load() as Promise<Counting>;

/** What a tablet goes through between two attempts. */
const EVENTS: Readonly<Record<string, (tablet: Counting) => Promise<unknown>>> = {
  nothing: async () => {},
  'a crash': (tablet) => tablet.reload(),
  'a flush': (tablet) => tablet.tablet.flush(),
  'a flush and a crash': (tablet) => tablet.tablet.flush().then(() => tablet.reload()),
  'a merge of files': async (tablet) => {
    for (let i = 0; i < 12; i++) {
      await tablet.once(`other ${i}`, TOKEN);
      await tablet.tablet.flush();
    }
    while (tablet.tablet.dueCompaction() !== undefined) await tablet.tablet.compact('merging');
  },
  'a major compaction': (tablet) => tablet.tablet.compact('major'),
};

describe('a write with a token', () => {
  for (const [event, happens] of Object.entries(EVENTS)) {
    test(`is made once, with ${event} between its attempts`, async () => {
      const tablet = await opened();
      await tablet.once('a', TOKEN);
      await tablet.once('a', 'token-02');
      await tablet.once('b', TOKEN);
      await happens(tablet);
      for (const row of ['a', 'b']) await tablet.once(row, TOKEN);
      assert.deepEqual([await tablet.countOf('a'), await tablet.countOf('b')], [2, 1]);
      await tablet.once('a', 'token-03');
      assert.equal(await tablet.countOf('a'), 3);
      await tablet.assertNoOrphans();
    });

    test(`is made again when its token is forgotten, with ${event} before`, async () => {
      const tablet = await opened();
      await tablet.once('a', TOKEN);
      await happens(tablet);
      tablet.clock.advance(TOKEN_MS - 1000);
      await tablet.once('a', TOKEN);
      assert.equal(await tablet.countOf('a'), 1);
      tablet.clock.advance(2000);
      await tablet.once('a', TOKEN);
      assert.equal(await tablet.countOf('a'), 2);
    });

    test(`is not made again after a deletion, with ${event} between`, async () => {
      for (const deletes of [
        (tablet: Counting) => tablet.apply('a', { kind: 'deleteFromRow' }),
        (tablet: Counting) => tablet.tablet.dropRows(tablet.context, { start: '', end: undefined }),
      ]) {
        const tablet = await opened();
        await tablet.once('a', TOKEN);
        await happens(tablet);
        await deletes(tablet);
        await happens(tablet);
        await tablet.once('a', TOKEN);
        assert.deepEqual(await tablet.cellsOfRow('a'), []);
      }
    });
  }

  test('is made once of attempts at the same time', async () => {
    for (const buffered of [false, true]) {
      const tablet = new Counting();
      tablet.buffered = buffered;
      await tablet.load();
      const attempts = Array.from({ length: 10 }, () => tablet.once('a', TOKEN));
      const other = tablet.apply('a', add(100));
      await Promise.all([...attempts, other]);
      assert.equal(await tablet.countOf('a'), 101);
    }
  });

  test('is made once in batches, where others are made each time', async () => {
    const tablet = await opened();
    const entries = [
      { row: 'a', mutations: [add(1)], idempotency: { token: TOKEN } },
      { row: 'a', mutations: [add(10)] },
      { row: 'a', mutations: [add(1)], idempotency: { token: TOKEN } },
      { row: 'b', mutations: [add(1)], idempotency: { token: TOKEN } },
    ];
    for (let attempt = 1; attempt <= 2; attempt++) {
      assert.deepEqual(
        await tablet.tablet.mutateRows(tablet.context, entries),
        entries.map(() => undefined),
      );
      assert.deepEqual([await tablet.countOf('a'), await tablet.countOf('b')], [1 + 10 * attempt, 1]);
    }
  });

  test('is made once if it takes many slices', async () => {
    const tablet = await opened();
    const many = Array.from({ length: 5000 }, () => add(1));
    await Promise.all([tablet.once('a', TOKEN, ...many), tablet.once('a', TOKEN, ...many)]);
    assert.equal(await tablet.countOf('a'), 5000);
    await tablet.reload();
    await tablet.once('a', TOKEN, ...many);
    assert.equal(await tablet.countOf('a'), 5000);
  });

  test('is made once in the part of a tablet that has its row', async () => {
    const tablet = await opened();
    for (const row of ['a', 'z']) await tablet.once(row, TOKEN);
    let states: readonly unknown[] = [];
    const hosts = (): Promise<never> => Promise.reject(new Error('not here'));
    await assert.rejects(
      tablet.tablet.divide('m', (parts) => {
        states = parts.map(({ files }) => Object.keys(files).sort());
        return hosts();
      }),
    );
    assert.deepEqual(states, [
      [TOKEN_GROUP, 'default'],
      [TOKEN_GROUP, 'default'],
    ]);
  });

  test('is made once if its row is deleted, and that is flushed, while files are merged', async () => {
    const tablet = await opened();
    await tablet.once('a', TOKEN);
    await tablet.tablet.flush();
    let flushed = false;
    tablet.onCompaction = async () => {
      await tablet.apply('a', { kind: 'deleteFromRow' });
      await tablet.set('a', 'v');
      await tablet.tablet.flush();
      flushed = true;
    };
    await tablet.tablet.compact('major');
    assert.ok(flushed);
    await tablet.once('a', TOKEN);
    assert.deepEqual(await tablet.cells(), ['a f:q@1=v']);
    assert.equal(tablet.state.files[TOKEN_GROUP]?.length, 1);
  });

  test('leaves nothing that is seen, and its file goes when its tokens are forgotten', async () => {
    const tablet = await opened();
    await tablet.once('a', TOKEN, {
      kind: 'setCell',
      family: 'f',
      qualifier: 'q',
      timestamp: 1,
      value: Buffer.from('v'),
    });
    await tablet.once('b', TOKEN, { kind: 'deleteFromRow' });
    const shown = async (): Promise<void> => {
      assert.deepEqual(await tablet.cells(), ['a f:q@1=v']);
      const families = (await tablet.tablet.familyUsage()).map(({ family, cells }) => [family, cells]);
      assert.deepEqual(families, [
        ['f', 1],
        ['sum', 0],
      ]);
    };
    await shown();
    await tablet.tablet.flush();
    await shown();
    await tablet.tablet.compact('major');
    await shown();
    assert.deepEqual(Object.keys(tablet.state.files).sort(), [TOKEN_GROUP, 'default']);
    assert.notEqual(tablet.tablet.uncollectedSinceMicros, undefined);
    tablet.clock.advance(TOKEN_MS + 1);
    await tablet.tablet.compact('major');
    await shown();
    assert.deepEqual(Object.keys(tablet.state.files), ['default']);
    assert.equal(tablet.tablet.uncollectedSinceMicros, undefined);
  });

  test('is made as often as a plain model says, whatever the tablet goes through', async () => {
    const step = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({ row: fc.constantFrom('a', 'b'), token: fc.constantFrom(TOKEN, 'token-02') }),
      },
      { weight: 4, arbitrary: fc.constantFrom(...Object.keys(EVENTS).filter((event) => !event.includes('merge'))) },
      { weight: 2, arbitrary: fc.constantFrom('a deletion', 'a range', 'a change') },
      { weight: 2, arbitrary: fc.integer({ min: 1, max: 2 * TOKEN_MS }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const tablet = await opened();
        const counts = new Map<string, number>();
        const madeAtMicros = new Map<string, number>();
        const added = (row: string): void => void counts.set(row, (counts.get(row) ?? 0) + 1);
        for (const one of steps) {
          if (typeof one === 'number') tablet.clock.advance(one);
          else if (one === 'a deletion') {
            await tablet.apply('a', { kind: 'deleteFromRow' });
            counts.delete('a');
          } else if (one === 'a range') {
            await tablet.tablet.dropRows(tablet.context, { start: 'b', end: undefined });
            counts.delete('b');
          } else if (one === 'a change') {
            await tablet.apply('a', add(1));
            added('a');
          } else if (typeof one === 'string') await EVENTS[one]!(tablet);
          else {
            const { row, token } = one;
            const key = `${row} ${token}`;
            const nowMicros = tablet.clock.nowMicros();
            const sinceMicros = nowMicros - (madeAtMicros.get(key) ?? Number.NEGATIVE_INFINITY);
            await tablet.once(row, token);
            if (sinceMicros <= TOKEN_MS * 1000) continue;
            madeAtMicros.set(key, nowMicros);
            added(row);
          }
        }
        for (const row of ['a', 'b']) assert.equal(await tablet.countOf(row), counts.get(row) ?? 0, row);
      }),
      { numRuns: 150 },
    );
  });
});
