import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type DrawOptions, drawFaults, type Fault, nameOf } from './faults.ts';

const OPTIONS: DrawOptions = { seed: 7, servers: 5, store: 's3', canCut: true, isShort: false, only: '' };

function drawn(options: DrawOptions, count: number): readonly Fault[] {
  const faults: Fault[] = [];
  for (const fault of drawFaults(options)) if (faults.push(fault) === count) break;
  return faults;
}

const DECK = 27;

describe('faults', () => {
  test('one seed draws the same faults again, another one others', () => {
    assert.deepEqual(drawn(OPTIONS, 60), drawn(OPTIONS, 60));
    assert.notDeepEqual(drawn(OPTIONS, 60), drawn({ ...OPTIONS, seed: 8 }, 60));
  });

  test('each kind, and each direction between two roles, comes once before any comes again', () => {
    const names = drawn(OPTIONS, 2 * DECK).map(nameOf);
    assert.equal(new Set(names.slice(0, DECK)).size, DECK);
    assert.deepEqual(names.slice(0, DECK).sort(), names.slice(DECK).sort());
  });

  test('a short run has its faults once, and ends', () => {
    const names = drawn({ ...OPTIONS, isShort: true }, DECK).map(nameOf);
    assert.ok(names.length > 1 && new Set(names).size === names.length, names.join(', '));
  });

  test('there are no cuts without namespaces, and none from the store where it is a directory', () => {
    assert.ok(drawn({ ...OPTIONS, canCut: false }, 2 * DECK).every(({ kind }) => kind !== 'cut'));
    const cuts = drawn({ ...OPTIONS, store: 'directory' }, 2 * DECK).flatMap(({ between }) => between ?? []);
    assert.ok(cuts.includes('etcd') && !cuts.includes('store'));
  });
});
