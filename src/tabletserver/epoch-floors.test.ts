import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type MetadataKey, metadataKey, type MetadataRow } from '../metadata/index.ts';
import { EpochFloors } from './epoch-floors.ts';

const keyOf = (i: number): MetadataKey => metadataKey(i.toString(16).padStart(8, '0'), undefined);

function rowOf(server: string, epoch: number): MetadataRow {
  return {
    tableId: '00000010',
    range: { start: '', end: undefined },
    server: { name: server, address: 'here' },
    epoch,
    version: 1,
    commitId: '',
    files: {},
    redo: { epoch: 0, sequence: 0 },
    logs: [],
  };
}

function fixture(): { rows: Map<MetadataKey, MetadataRow>; floors: EpochFloors; errors: unknown[] } {
  const rows = new Map<MetadataKey, MetadataRow>();
  const errors: unknown[] = [];
  const readRow = async (key: MetadataKey): Promise<MetadataRow | undefined> => {
    if (errors.length === 1) throw new Error('METADATA is away again');
    return rows.get(key);
  };
  return {
    rows,
    errors,
    floors: new EpochFloors({ serverName: 'me', readRow, onError: (error) => errors.push(error) }),
  };
}

describe('floors of epochs', () => {
  test('only rise, and are gone when the tablet is served above them', () => {
    const { floors } = fixture();
    assert.equal(floors.of(keyOf(1)), 0);
    floors.raise(keyOf(1), 5);
    floors.raise(keyOf(1), 3);
    assert.equal(floors.of(keyOf(1)), 5);
    assert.throws(() => floors.passed(keyOf(1), 5), /at or below its floor/);
    floors.passed(keyOf(1), 6);
    assert.deepEqual([floors.of(keyOf(1)), floors.size], [0, 0]);
  });

  test('are kept while METADATA may give the tablet to this server below them, and no longer', async () => {
    const { floors, rows } = fixture();
    // of a thousand tablets ten are still this server's by their rows
    for (let i = 0; i < 1000; i++) {
      if (i % 100 === 7) rows.set(keyOf(i), rowOf('me', 4));
      else if (i % 3 === 0) rows.set(keyOf(i), rowOf('another', 9));
      else if (i % 3 === 1) rows.set(keyOf(i), rowOf('me', 5));
      floors.raise(keyOf(i), 4);
      await floors.checking;
      assert.ok(floors.size <= 9 + 2 * 10, `${floors.size} floors`);
    }
    for (let i = 7; i < 1000; i += 100) assert.equal(floors.of(keyOf(i)), 4, `${i}`);
  });

  test('all stay if METADATA cannot be read', async () => {
    const { floors, errors } = fixture();
    errors.push('an error before');
    for (let i = 0; i < 200; i++) {
      errors.length = 1;
      floors.raise(keyOf(i), 4);
      await floors.checking;
    }
    assert.equal(floors.size, 200);
  });
});
