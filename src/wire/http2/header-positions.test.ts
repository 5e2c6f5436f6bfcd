import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { HeaderPositions } from './header-positions.ts';

function firstValue(list: readonly string[], name: string): string | undefined {
  for (let i = 0; i < list.length; i += 2) if (list[i] === name) return list[i + 1];
  return undefined;
}

describe('positions of headers', () => {
  test('lists with the same names have their own first values, also with missing names and values that look like names', () => {
    const word = fc.constantFrom('a', 'b', 'c', 'te', '');
    const lists = fc
      .array(word, { maxLength: 8 })
      .chain((names) =>
        fc
          .array(fc.tuple(...names.map(() => word)), { minLength: 1, maxLength: 5 })
          .map((all) => all.map((values) => names.flatMap((name, i) => [name, values[i] as string]))),
      );
    fc.assert(
      fc.property(lists, fc.array(word, { maxLength: 12 }), (given, asked) => {
        const positions = new HeaderPositions();
        for (const list of given)
          for (const name of asked) assert.equal(positions.value(list, name), firstValue(list, name));
      }),
    );
  });

  test('more names than it remembers are found as well', () => {
    const list = Array.from({ length: 200 }, (_, i) => (i % 2 === 0 ? `name${i}` : `value${i}`));
    const positions = new HeaderPositions();
    for (let round = 0; round < 2; round++)
      for (let i = 0; i < 200; i += 2) assert.equal(positions.value(list, `name${i}`), `value${i + 1}`);
    assert.equal(positions.value(list, 'name1'), undefined);
  });
});
