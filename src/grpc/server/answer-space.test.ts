import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../../base/index.ts';
import { ByteBudget } from '../../env/index.ts';
import { withAnswerSpace } from './answer-space.ts';

const MIB = 1024 * 1024;

/**
 * A row whose answers have these sizes, as a tablet server makes them: one after another, the last for all further
 * tries.
 */
function row(...sizes: number[]) {
  const limits: number[] = [];
  const call = async (maxAnswerBytes: number): Promise<string> => {
    const answerBytes = sizes[Math.min(limits.length, sizes.length - 1)] as number;
    limits.push(maxAnswerBytes);
    if (answerBytes > maxAnswerBytes)
      throw new BigtableError(Code.RESOURCE_EXHAUSTED, 'too low', { details: { answerBytes } });
    return 'written';
  };
  return { limits, call };
}

describe('space for an answer', () => {
  test('a small answer takes one call', async () => {
    const reservation = new ByteBudget(16 * MIB).reservation();
    const { limits, call } = row(100);
    assert.equal(await withAnswerSpace(reservation, call), 'written');
    assert.deepEqual([limits.length, reservation.heldBytes], [1, limits[0]]);
  });

  test('space for a larger one is reserved before the call is repeated', async () => {
    const reservation = new ByteBudget(16 * MIB).reservation();
    const { limits, call } = row(MIB, MIB + 10, MIB + 10);
    assert.equal(await withAnswerSpace(reservation, call), 'written');
    assert.deepEqual([limits.slice(1), reservation.heldBytes], [[MIB, MIB + 10], MIB + 10]);
  });

  test('without space nothing is written', async () => {
    const budget = new ByteBudget(16 * MIB);
    budget.reservation().tryGrow(10 * MIB);
    const { limits, call } = row(4 * MIB);
    await assert.rejects(withAnswerSpace(budget.reservation(), call), {
      code: Code.RESOURCE_EXHAUSTED,
      message: /4194304 bytes exceeds the memory.*nothing was written/,
    });
    assert.equal(limits.length, 1);
  });

  test('other failures are returned unchanged', async () => {
    const failing = (): Promise<never> => Promise.reject(new BigtableError(Code.NOT_FOUND, 'no table'));
    await assert.rejects(withAnswerSpace(new ByteBudget(16 * MIB).reservation(), failing), { code: Code.NOT_FOUND });
  });

  test('a row that grows with every try fails in the end', async () => {
    const reservation = new ByteBudget(16 * MIB).reservation();
    const { limits, call } = row(2000, 3000, 4000, 5000, 6000);
    await assert.rejects(withAnswerSpace(reservation, call), { code: Code.RESOURCE_EXHAUSTED });
    assert.equal(limits.length, 4);
  });
});
