import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../../base/index.ts';
import { type ColumnKey, CursorState, EntryKind, type Layer, type Mutation } from '../../model/index.ts';
import { type PendingBatch, PendingRows } from './pending-rows.ts';

const set = (timestamp: number): Mutation => ({
  kind: 'setCell',
  family: 'f',
  qualifier: 'q',
  timestamp,
  value: Buffer.from('v'),
});

interface Batch extends PendingBatch {
  readonly append: { durable: Promise<number>; failure: BigtableError | undefined };
}

function batch(): Batch {
  return { append: { durable: Promise.resolve(1), failure: undefined }, done: Promise.resolve() };
}

/** The cells of the row in the layer: column and timestamp. */
function cellsOf(layer: Layer, row: string): [ColumnKey, unknown][] {
  const cells: [ColumnKey, unknown][] = [];
  const cursor = layer.rowCursor?.(row);
  assert.ok(cursor);
  for (cursor.seekRow(row); cursor.state === CursorState.ready; cursor.next())
    if (cursor.kind === EntryKind.put) cells.push([cursor.column, cursor.timestamp]);
  return cells;
}

const timestampsOf = (pending: PendingRows, row: string): unknown[][] =>
  pending.layersOf(row).map((layer) => cellsOf(layer, row).map(([, timestamp]) => timestamp));

describe('pending rows', () => {
  test('have a layer for each append, newest first, with what was added so far', () => {
    const pending = new PendingRows(() => () => undefined);
    const [first, second] = [batch(), batch()];
    assert.equal(pending.newestOf('r'), undefined);
    pending.add(first, 'r', [set(1)]);
    pending.add(first, 'other', [set(9)]);
    assert.deepEqual(timestampsOf(pending, 'r'), [[1]]);
    pending.add(first, 'r', [set(2)]);
    assert.equal(pending.newestOf('r'), first);
    pending.add(second, 'r', [{ kind: 'deleteFromRow' }, set(3)]);
    assert.equal(pending.newestOf('r'), second);
    assert.deepEqual(timestampsOf(pending, 'r'), [[3], [2, 1]]);
    pending.remove(first);
    assert.deepEqual(timestampsOf(pending, 'r'), [[3]]);
    assert.equal(pending.newestOf('other'), undefined);
    pending.remove(second);
    assert.deepEqual(pending.layersOf('r'), []);
  });

  test('of an append that has failed are not seen, even before they are removed', () => {
    const pending = new PendingRows(() => () => undefined);
    const [failed, later] = [batch(), batch()];
    pending.add(failed, 'r', [set(1)]);
    failed.append.failure = new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full');
    assert.equal(pending.newestOf('r'), undefined);
    assert.deepEqual(timestampsOf(pending, 'r'), []);
    pending.add(later, 'r', [set(2)]);
    assert.equal(pending.newestOf('r'), later);
    assert.deepEqual(timestampsOf(pending, 'r'), [[2]]);
  });

  test('of an append without such changes need no removal', () => {
    new PendingRows(() => () => undefined).remove(batch());
  });
});
