import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { commitOfMerge, givenTo, releasedAt } from './commit.ts';
import type { MetadataRow } from './metadata-row.ts';
import { MAX_PAST_OWNERS, ownersSince } from './past-owners.ts';

const ROW: MetadataRow = {
  tableId: '00000010',
  range: { start: '', end: undefined },
  server: undefined,
  epoch: 0,
  version: 0,
  commitId: '',
  files: {},
  redo: { epoch: 0, sequence: 0 },
  logs: [],
};
const [A, B] = [
  { name: 'a', address: 'x' },
  { name: 'b', address: 'y' },
];

describe('the past owners of a tablet', () => {
  test('are named only where the table has a change stream', () => {
    const plain = givenTo(givenTo(ROW, A, 'logs/a', 1), B, 'logs/b', 2);
    assert.equal(plain.pastOwners, undefined);
    assert.equal(releasedAt(plain, 3).pastOwners, undefined);
    const first = givenTo({ ...ROW, pastOwners: [] }, A, 'logs/a', 1);
    assert.deepEqual(first.pastOwners, []);
    const second = givenTo(first, B, 'logs/b', 2);
    assert.deepEqual(second.pastOwners, [{ server: 'a', epoch: 1, untilMicros: 2 }]);
    const released = releasedAt(second, 5);
    assert.deepEqual(released.pastOwners?.at(-1), { server: 'b', epoch: 2, untilMicros: 5 });
    // one that was released has no owner who becomes a past one
    assert.deepEqual(givenTo(released, A, 'logs/a', 9).pastOwners, released.pastOwners);
  });

  test('keep the place in their log at which the changes of the tablet begin', () => {
    const served = { ...givenTo({ ...ROW, pastOwners: [] }, A, 'logs/a', 1), changesFrom: 7 };
    const next = givenTo(served, B, 'logs/b', 2);
    assert.equal(next.changesFrom, undefined, 'the next owner says where it begins');
    assert.equal(next.pastOwners?.at(-1)?.changesFrom, 7);
    assert.equal(releasedAt(served, 2).changesFrom, undefined);
    assert.equal(releasedAt(served, 2).pastOwners?.at(-1)?.changesFrom, 7);
  });

  test('keep the place at which the changes end, where the owner has said so', () => {
    const served = { ...givenTo({ ...ROW, pastOwners: [] }, A, 'logs/a', 1), changesFrom: 7, changesUntil: 9 };
    const next = givenTo(served, B, 'logs/b', 2);
    assert.deepEqual(next.pastOwners?.at(-1), {
      server: 'a',
      epoch: 1,
      untilMicros: 2,
      changesFrom: 7,
      changesUntil: 9,
    });
    assert.equal(next.changesUntil, undefined, 'the next owner has changes to come');
    assert.equal(releasedAt(served, 2).changesUntil, undefined);
  });

  test('span the changes of both parts of a split that were merged again', () => {
    const ofLow = { server: 'a', epoch: 1, untilMicros: 9, changesFrom: 4, changesUntil: 6 };
    const cases: readonly (readonly [object, object])[] = [
      [
        { untilMicros: 8, changesFrom: 4, changesUntil: 7 },
        { untilMicros: 9, changesFrom: 4, changesUntil: 7 },
      ],
      [
        { untilMicros: 10, changesFrom: 3, changesUntil: 5 },
        { untilMicros: 10, changesFrom: 3, changesUntil: 6 },
      ],
      // one that died: its log is read to its end
      [
        { untilMicros: 8, changesFrom: 5 },
        { untilMicros: 9, changesFrom: 4 },
      ],
      // one that never served its part
      [{ untilMicros: 10 }, { untilMicros: 10, changesFrom: 4, changesUntil: 6 }],
    ];
    const low: MetadataRow = { ...ROW, range: { start: '', end: 'm' }, epoch: 2, pastOwners: [ofLow] };
    for (const [ofHigh, merged] of cases) {
      const high: MetadataRow = {
        ...low,
        range: { start: 'm', end: undefined },
        pastOwners: [{ server: 'a', epoch: 1, untilMicros: 0, ...ofHigh }],
      };
      for (const [one, other] of [
        [low, high],
        [
          { ...low, pastOwners: high.pastOwners },
          { ...high, pastOwners: low.pastOwners },
        ],
      ] as const)
        assert.deepEqual(commitOfMerge('id', 10, one, other).rows[1]!.row?.pastOwners, [
          { server: 'a', epoch: 1, ...merged },
        ]);
    }
  });

  test('are those of both tablets after a merge, each once, by epoch', () => {
    const low: MetadataRow = {
      ...ROW,
      range: { start: '', end: 'm' },
      epoch: 4,
      pastOwners: [
        { server: 'a', epoch: 1, untilMicros: 5 },
        { server: 'b', epoch: 3, untilMicros: 9 },
      ],
    };
    const high: MetadataRow = {
      ...low,
      range: { start: 'm', end: undefined },
      pastOwners: [
        { server: 'a', epoch: 1, untilMicros: 7 },
        { server: 'a', epoch: 3, untilMicros: 8 },
      ],
    };
    const { row } = commitOfMerge('id', 10, low, high).rows[1]!;
    assert.deepEqual(row?.pastOwners, [
      { server: 'a', epoch: 1, untilMicros: 7 },
      { server: 'a', epoch: 3, untilMicros: 8 },
      { server: 'b', epoch: 3, untilMicros: 9 },
    ]);
    const { pastOwners: _, ...plain } = low;
    assert.deepEqual(commitOfMerge('id', 10, plain, high).rows[1]!.row?.pastOwners, high.pastOwners);
  });

  test('are bounded in number: the oldest go first', () => {
    let row: MetadataRow = { ...ROW, pastOwners: [] };
    for (let i = 0; i < MAX_PAST_OWNERS + 5; i++) row = givenTo(row, i % 2 === 0 ? A : B, 'logs/x', i);
    assert.equal(row.pastOwners?.length, MAX_PAST_OWNERS);
    assert.equal(row.pastOwners?.at(-1)?.epoch, row.epoch - 1);
    assert.equal(row.pastOwners?.[0]?.epoch, row.epoch - MAX_PAST_OWNERS);
  });

  test('are forgotten when all their changes are too old', () => {
    const owner = fc.record({ server: fc.constant('a'), epoch: fc.nat(), untilMicros: fc.nat(100) });
    fc.assert(
      fc.property(fc.array(owner), fc.nat(100), (owners, since) => {
        const kept = ownersSince(owners, since);
        assert.deepEqual(
          kept,
          owners.filter(({ untilMicros }) => untilMicros >= since),
        );
        // the same list where nothing is forgotten: a row that stays as it is needs no commit
        assert.equal(kept === owners, kept.length === owners.length);
      }),
    );
  });
});
