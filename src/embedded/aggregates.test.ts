import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Code } from '../base/index.ts';
import { aggregateInput, mergeAggregates } from '../model/index.ts';
import { open, RowMutation } from './index.ts';

/** The state of all inputs in one cell. */
const stateOf = (inputs: readonly string[]): Uint8Array =>
  inputs.map((input) => aggregateInput('hll', Buffer.from(input))).reduce((a, b) => mergeAggregates('hll', a, b));

describe('counts of distinct inputs', () => {
  test('are one state, whatever additions, merges, flushes and compactions come between', async () => {
    const step = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({ kind: fc.constant('add' as const), input: fc.stringMatching(/^[a-f]{1,2}$/) }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          kind: fc.constant('merge' as const),
          inputs: fc.array(fc.stringMatching(/^[a-z]{1,3}$/), { minLength: 1, maxLength: 5 }),
        }),
      },
      { weight: 1, arbitrary: fc.constant({ kind: 'flush' as const }) },
      { weight: 1, arbitrary: fc.constant({ kind: 'compact' as const }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 15 }), async (steps) => {
        await using database = await open(':memory:');
        const table = await database.createTable('t', { families: { seen: { aggregate: 'hll' } } });
        const inputs: string[] = [];
        for (const each of steps) {
          if (each.kind === 'flush') await database.flush();
          else if (each.kind === 'compact') await database.compact('t');
          else if (each.kind === 'add') await table.apply(new RowMutation('r').add('seen:by', each.input));
          else await table.apply(new RowMutation('r').merge('seen:by', stateOf(each.inputs)));
          if (each.kind === 'add') inputs.push(each.input);
          if (each.kind === 'merge') inputs.push(...each.inputs);
        }
        const cell = await table.getCell('r', 'seen:by');
        assert.deepEqual(cell?.value, inputs.length === 0 ? undefined : Buffer.from(stateOf(inputs)));
      }),
      { numRuns: 25 },
    );
  });

  test('a deletion between starts the count anew', async () => {
    await using database = await open(':memory:');
    const table = await database.createTable('t', { families: { seen: { aggregate: 'hll' } } });
    await table.apply(new RowMutation('r').add('seen:by', 'a'));
    await database.flush();
    await table.apply(new RowMutation('r').delete('seen:by').add('seen:by', 'b'));
    assert.deepEqual((await table.getCell('r', 'seen:by'))?.value, Buffer.from(stateOf(['b'])));
  });

  test('wrong inputs and states are refused, and change nothing', async () => {
    await using database = await open(':memory:');
    const table = await database.createTable('t', {
      families: { seen: { aggregate: 'hll' }, sum: { aggregate: 'sum' } },
    });
    const refused = async (mutation: RowMutation): Promise<void> =>
      assert.rejects(table.apply(mutation), { code: Code.INVALID_ARGUMENT });
    await refused(new RowMutation('r').add('seen:by', 5));
    await refused(new RowMutation('r').add('sum:of', 'text'));
    await refused(new RowMutation('r').merge('seen:by', Buffer.alloc(8)));
    await refused(new RowMutation('r').merge('sum:of', Buffer.from(stateOf(['a']))));
    await refused(new RowMutation('r').merge('seen:by', aggregateInput('hll', 5)));
    assert.equal(await table.get('r'), undefined);
  });
});
