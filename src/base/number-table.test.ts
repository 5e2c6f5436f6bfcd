import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { NumberTable } from './number-table.ts';

const key = fc.oneof(fc.nat(40), fc.constantFrom(0, 2 ** 31 - 1, 2 ** 31 - 2), fc.nat(2 ** 31 - 1));
const step = fc.oneof(
  fc.tuple(fc.constant('set' as const), key, fc.nat()),
  fc.tuple(fc.constant('delete' as const), key, fc.constant(0)),
  fc.tuple(fc.constant('clear' as const), fc.constant(0), fc.constant(0)),
);

describe('NumberTable', () => {
  test('is a map', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            { weight: 60, arbitrary: step.filter(([what]) => what !== 'clear') },
            { weight: 1, arbitrary: step },
          ),
          { maxLength: 300 },
        ),
        (steps) => {
          const table = new NumberTable<number>();
          const model = new Map<number, number>();
          for (const [what, number, value] of steps) {
            if (what === 'set') {
              table.set(number, value);
              model.set(number, value);
            } else if (what === 'delete') assert.equal(table.delete(number), model.delete(number));
            else {
              table.clear();
              model.clear();
            }
            assert.equal(table.size, model.size);
            assert.equal(table.get(number), model.get(number));
            assert.equal(table.has(number), model.has(number));
          }
          for (const [number, value] of model) assert.equal(table.get(number), value);
          assert.deepEqual(table.values().sort(), [...model.values()].sort());
        },
      ),
    );
  });

  test('an undefined value is one', () => {
    const table = new NumberTable<undefined>();
    table.set(3, undefined);
    assert.deepEqual([table.has(3), table.has(4), table.values()], [true, false, [undefined]]);
  });
});
