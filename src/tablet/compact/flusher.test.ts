import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FileOperation, MemoryFileSystem } from '../../env/index.ts';
import { schemaOf, TabletFixture } from '../fixtures.ts';

test('files of buffered writes are committed once the records of the writes are durable', async () => {
  let held: Promise<void> | undefined;
  const faults = (operation: FileOperation): Promise<void> | undefined =>
    operation === 'appendReserved' ? held : undefined;
  const fixture = new TabletFixture(schemaOf({ f: { name: 'f' } }), new MemoryFileSystem({ faults }));
  fixture.buffered = true;
  await fixture.load();
  let appendGoesOn = (): void => {};
  held = new Promise((resolve) => (appendGoesOn = resolve));
  await fixture.set('row', 'acknowledged');
  let isDurable = false;
  fixture.onCommit = async () => assert.equal(isDurable, true);
  const flush = fixture.tablet.flush();
  // all but the append takes far fewer turns
  for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(fixture.state.redo, { epoch: 0, sequence: 0 });
  isDurable = true;
  appendGoesOn();
  await flush;
  assert.deepEqual(fixture.state.redo, { epoch: 1, sequence: 1 });
});
