import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code } from '../base/index.ts';
import { type ChangePosition, comparePositions, type StreamProgress } from '../model/index.ts';
import { advanced, decodeToken, decodeTokens, encodeToken, progressOf } from './stream-token.ts';

const SERVERS = ['0'.repeat(32), 'f'.repeat(32)];
const place: fc.Arbitrary<ChangePosition> = fc.record(
  {
    server: fc.constantFrom(...SERVERS),
    epoch: fc.nat(3),
    position: fc.nat(3),
    record: fc.nat(2),
    row: fc.nat(2),
  },
  { noNullPrototype: true },
);
/** Parts of all rows. */
const progress: fc.Arbitrary<readonly StreamProgress[]> = fc
  .tuple(
    fc.uniqueArray(fc.constantFrom('b', 'd\xff', 'm', 'x'), { maxLength: 4 }),
    fc.array(fc.tuple(fc.nat(2), fc.option(place, { nil: undefined })), { minLength: 5, maxLength: 5 }),
  )
  .map(([boundaries, places]) => {
    const ends = [...boundaries.sort(), undefined];
    return ends.map((end, i) => {
      const [fromMicros, after] = places[i]!;
      return { range: { start: i === 0 ? '' : ends[i - 1]!, end }, fromMicros, after };
    });
  });
const WHOLE = { start: '', end: undefined };

const isRefused = (work: () => unknown): void =>
  assert.throws(work, (error) => error instanceof BigtableError && error.code === Code.INVALID_ARGUMENT);

/** The place of the reader of a row. */
function afterOf(all: readonly StreamProgress[], row: string): ChangePosition | undefined {
  return all.find(({ range }) => row >= range.start && (range.end === undefined || row < range.end))?.after;
}

describe('tokens of change streams', () => {
  test('say what they were made of', () => {
    fc.assert(
      fc.property(progress, (all) => {
        assert.deepEqual(decodeToken({ range: WHOLE, token: encodeToken(all) }), all);
      }),
    );
  });

  test('of the parts of a range say together what that of the range says', () => {
    fc.assert(
      fc.property(progress, fc.constantFrom('a', 'd\xff', 'n'), (all, boundary) => {
        const parts = [
          { start: '', end: boundary },
          { start: boundary, end: undefined },
        ];
        const tokens = parts.map((range) => ({ range, token: encodeToken(progressOf(all, range)) }));
        for (const row of ['', 'a', 'b', 'c', 'd\xff', 'e', 'm', 'n', 'z'])
          assert.deepEqual(afterOf(decodeTokens([...tokens].reverse(), WHOLE), row), afterOf(all, row));
        isRefused(() => decodeTokens(tokens.slice(1), WHOLE));
        isRefused(() => decodeTokens([tokens[0]!, tokens[0]!, tokens[1]!], WHOLE));
        isRefused(() => decodeTokens([], WHOLE));
      }),
    );
  });

  test('advance, and never go back', () => {
    fc.assert(
      fc.property(progress, place, (all, to) => {
        const next = advanced(all, to);
        for (const row of ['', 'c', 'e', 'n', 'z']) {
          const [before, after] = [afterOf(all, row), afterOf(next, row)];
          assert.ok(after !== undefined && comparePositions(after, to) >= 0);
          assert.deepEqual(after, before !== undefined && comparePositions(before, to) > 0 ? before : to);
        }
      }),
    );
  });

  test('that are none are refused', () => {
    const [ofPart] = [encodeToken([{ range: { start: 'a', end: 'b' }, fromMicros: 0 }])];
    isRefused(() => decodeToken({ range: WHOLE, token: ofPart }));
    for (const token of ['', 'x', '{}', Buffer.from('{}').toString('base64url'), 'A'.repeat(2_000_000)])
      isRefused(() => decodeToken({ range: WHOLE, token }));
    const document = (server: unknown): string =>
      Buffer.from(
        JSON.stringify({
          format: 1,
          requires: 0,
          progress: [{ start: '', fromMicros: 0, after: { server, epoch: 1, position: 0, record: 0, row: 0 } }],
        }),
      ).toString('base64url');
    assert.equal(decodeToken({ range: WHOLE, token: document(SERVERS[0]) }).length, 1);
    for (const server of ['../x', '0', 5]) isRefused(() => decodeToken({ range: WHOLE, token: document(server) }));
    fc.assert(
      fc.property(fc.string(), (token) => {
        try {
          decodeToken({ range: WHOLE, token });
        } catch (error) {
          assert.ok(error instanceof BigtableError && error.code === Code.INVALID_ARGUMENT);
        }
      }),
    );
  });
});
