import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Int64 } from '../base/index.ts';
import { versionKeeper } from './gc.ts';
import type { GcRule } from './schema.ts';

const NOW = 1_000_000;

/** The versions of a column (newest first) that a rule drops, straight from the API's words. */
function dropped(rule: GcRule, versions: readonly Int64[]): ReadonlySet<Int64> {
  switch (rule.kind) {
    case 'maxVersions':
      return new Set(versions.slice(rule.versions));
    case 'maxAge':
      return new Set(versions.filter((timestamp) => BigInt(NOW) - BigInt(timestamp) > BigInt(rule.ageMicros)));
    case 'union':
      return new Set(rule.rules.flatMap((part) => [...dropped(part, versions)]));
    case 'intersection':
      return new Set(
        versions.filter(
          (timestamp) => rule.rules.length > 0 && rule.rules.every((part) => dropped(part, versions).has(timestamp)),
        ),
      );
  }
}

const { rule } = fc.letrec<{ rule: GcRule }>((tie) => ({
  rule: fc.oneof(
    { maxDepth: 3 },
    fc.integer({ min: 1, max: 6 }).map((versions): GcRule => ({ kind: 'maxVersions', versions })),
    fc.constantFrom(1000, 5000, NOW, 2 ** 52).map((ageMicros): GcRule => ({ kind: 'maxAge', ageMicros })),
    fc.array(tie('rule'), { maxLength: 3 }).map((rules): GcRule => ({ kind: 'union', rules })),
    fc.array(tie('rule'), { maxLength: 3 }).map((rules): GcRule => ({ kind: 'intersection', rules })),
  ),
}));
const timestamps: fc.Arbitrary<Int64> = fc.oneof(
  fc.integer({ min: NOW - 6000, max: NOW + 1000 }),
  fc.constantFrom<Int64>(NOW - 1000, NOW - 1001, NOW - 5000, 0, -1, 2n ** 63n - 1n, -(2n ** 63n)),
);
const columns = fc.uniqueArray(timestamps, { maxLength: 8 }).map((all) => all.sort((a, b) => (a > b ? -1 : 1)));

describe('garbage collection on read', () => {
  test('keeps what the rule does not drop', () => {
    fc.assert(
      fc.property(rule, columns, (one, versions) => {
        const gone = dropped(one, versions);
        const keeps = versionKeeper(one, NOW);
        versions.forEach((timestamp, i) =>
          assert.equal(keeps(i, timestamp), !gone.has(timestamp), `version ${i} at ${timestamp}`),
        );
      }),
      { numRuns: 1000 },
    );
  });

  test('is monotone: after a dropped version none is kept', () => {
    fc.assert(
      fc.property(rule, columns, (one, versions) => {
        const keeps = versionKeeper(one, NOW);
        const kept = versions.map((timestamp, i) => keeps(i, timestamp));
        assert.equal(kept.lastIndexOf(true) + 1, kept.filter(Boolean).length);
      }),
      { numRuns: 1000 },
    );
  });

  test('without a rule, or with none to agree, everything stays', () => {
    for (const none of [undefined, { kind: 'union', rules: [] }, { kind: 'intersection', rules: [] }] as const) {
      assert.equal(versionKeeper(none, NOW)(1_000_000, -(2n ** 63n)), true);
    }
  });

  test('a version exactly at the age stays, one older goes', () => {
    const keeps = versionKeeper({ kind: 'maxAge', ageMicros: 1000 }, NOW);
    assert.equal(keeps(0, NOW - 1000), true);
    assert.equal(keeps(0, NOW - 1001), false);
  });
});
