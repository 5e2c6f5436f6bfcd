import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { RowFilter } from './filter.ts';
import { namedFamilies } from './named-families.ts';

describe('the families that a filter names', () => {
  const regex = (text: string): RowFilter => ({ kind: 'familyNameRegex', regex: text });

  test('are those of literal expressions, column ranges, and chains of them', () => {
    const range: RowFilter = { kind: 'columnRange', family: 'g' };
    assert.deepEqual(namedFamilies(regex('f-1_x')), ['f-1_x']);
    assert.deepEqual(namedFamilies(regex('f\\.1\\-x')), ['f.1-x']);
    assert.deepEqual(namedFamilies(range), ['g']);
    const chain: RowFilter = { kind: 'chain', filters: [regex('f'), { kind: 'sink' }, range] };
    assert.deepEqual(namedFamilies(chain), ['f', 'g']);
  });

  test('are none where the expression may match several, and in alternatives', () => {
    for (const text of ['', '.', 'f.', 'f|g', 'f*', '[f]', '(f)', '\\d', '\\Qf\\E', 'f\\', '^f$', '\xff'])
      assert.deepEqual(namedFamilies(regex(text)), [], text);
    for (const filter of [
      { kind: 'interleave', filters: [regex('f'), regex('g')] },
      { kind: 'condition', predicate: regex('f'), whenTrue: regex('g') },
      { kind: 'passAll' },
    ] satisfies RowFilter[])
      assert.deepEqual(namedFamilies(filter), []);
  });
});
