import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Mutation, SetCell } from './mutation.ts';
import type { Granularity } from './schema.ts';
import { cutToGranularity, resolveTimestamps } from './server-time.ts';

const SET: SetCell = { kind: 'setCell', family: 'cf', qualifier: 'q', timestamp: 1000, value: Buffer.from('v') };

describe("the server's time", () => {
  const now = 1_700_000_000_123_456;

  test('is filled in where a cell has none, rounded down to the granularity', () => {
    const bare: SetCell = { kind: 'setCell', family: 'cf', qualifier: 'r', value: SET.value };
    const mutations: readonly Mutation[] = [SET, { ...SET, timestamp: undefined }, { kind: 'deleteFromRow' }, bare];
    const times = (granularity: Granularity) =>
      resolveTimestamps(mutations, now, granularity).map((mutation) =>
        'timestamp' in mutation ? mutation.timestamp : '-',
      );
    assert.deepEqual(times('millis'), [1000, 1_700_000_000_123_000, '-', 1_700_000_000_123_000]);
    assert.deepEqual(times('micros'), [1000, now, '-', now]);
    assert.equal(
      mutations[1]?.kind === 'setCell' && mutations[1].timestamp,
      undefined,
      'the mutations given stay as they are',
    );
  });

  test('the same array is returned where no time is missing', () => {
    const mutations: readonly Mutation[] = [SET, { kind: 'deleteFromFamily', family: 'cf' }];
    assert.equal(resolveTimestamps(mutations, now, 'millis'), mutations);
  });

  test('is rounded down, before 1970 too', () => {
    assert.equal(cutToGranularity(1999, 'millis'), 1000);
    assert.equal(cutToGranularity(-1, 'millis'), -1000);
    assert.equal(cutToGranularity(-1, 'micros'), -1);
  });
});
