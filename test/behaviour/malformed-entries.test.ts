/**
 * Batches over the wire with entries that are wrong in every way that a client can say: exactly those fail, each by its
 * own status, and exactly the others are applied. EDUBBA_SEED=N sends other batches.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { Code } from '../../src/base/index.ts';
import type { WireClient } from '../../src/wire/index.ts';
import { fieldsOf, message } from '../bad-input/protobuf.ts';
import { DOORS, type OpenDoor, wireClientOf } from './doors.ts';

const SEED = Number(process.env['EDUBBA_SEED'] ?? 1);
const TABLE = 'projects/p/instances/i/tables/t';
const METHOD = '/google.bigtable.v2.Bigtable/MutateRows';

const cell = (fields: Parameters<typeof message>[0] = {}): Buffer =>
  message({ 1: message({ 1: 'f', 2: 'q', 3: 1000, 4: 'v', ...fields }) });
const column = { 1: 'sum', 2: message({ 8: 'q' }), 3: message({ 9: 0 }) };

const GOOD: Readonly<Record<string, Buffer>> = {
  'a cell': cell(),
  'a cell of another column': cell({ 2: 'other' }),
  'a cell at the server’s time': cell({ 3: -1 }),
  'a deletion of the row': message({ 4: message() }),
  'a deletion of a column': message({ 2: message({ 1: 'f', 2: 'q' }) }),
  'an addition': message({ 5: message({ ...column, 4: message({ 6: 1 }) }) }),
};

/** Mutations that fail the entry that they stand in. */
const BAD: Readonly<Record<string, readonly [Buffer, Code]>> = {
  'no kind': [message(), Code.INVALID_ARGUMENT],
  'a kind to come': [message({ 99: message() }), Code.INVALID_ARGUMENT],
  'no family': [cell({ 1: '' }), Code.INVALID_ARGUMENT],
  'an ill-named family': [cell({ 1: 'a b' }), Code.INVALID_ARGUMENT],
  'an unknown family': [cell({ 1: 'none' }), Code.NOT_FOUND],
  'a family of aggregates': [cell({ 1: 'sum' }), Code.INVALID_ARGUMENT],
  'a long qualifier': [cell({ 2: 'q'.repeat(16_385) }), Code.INVALID_ARGUMENT],
  'a timestamp between two milliseconds': [cell({ 3: 1001 }), Code.INVALID_ARGUMENT],
  'an addition without input': [message({ 5: message(column) }), Code.INVALID_ARGUMENT],
  'an addition to a plain family': [
    message({ 5: message({ ...column, 1: 'f', 4: message({ 6: 1 }) }) }),
    Code.INVALID_ARGUMENT,
  ],
  'a short state': [message({ 6: message({ ...column, 4: message({ 8: 'short' }) }) }), Code.INVALID_ARGUMENT],
  'a time range turned around': [
    message({ 2: message({ 1: 'f', 2: 'q', 3: message({ 1: 2000, 2: 1000 }) }) }),
    Code.INVALID_ARGUMENT,
  ],
  'a deletion of an unknown family': [message({ 3: message({ 1: 'none' }) }), Code.NOT_FOUND],
};

/** Where a whole entry is wrong. */
const BAD_ENTRIES = ['no row', 'long row', 'no mutations'] as const;

interface Entry {
  readonly bytes: Buffer;
  /** Undefined: it is applied. */
  readonly code: Code | undefined;
}

/**
 * It ends with a cell, so that its row is there where it is applied. `bad`: what is wrong with it, and the place of the
 * bad mutation.
 */
function entryOf(row: string, good: readonly string[], bad?: { readonly at: number; readonly what: string }): Entry {
  const all = [...good.map((what) => GOOD[what] as Buffer), cell({ 2: 'done' })];
  if (bad === undefined) return { bytes: message({ 1: row, 2: all }), code: undefined };
  switch (bad.what) {
    case 'no row':
      return { bytes: message({ 2: all }), code: Code.INVALID_ARGUMENT };
    case 'long row':
      return { bytes: message({ 1: 'k'.repeat(65_537), 2: all }), code: Code.INVALID_ARGUMENT };
    case 'no mutations':
      return { bytes: message({ 1: row }), code: Code.INVALID_ARGUMENT };
  }
  const [mutation, code] = BAD[bad.what] as readonly [Buffer, Code];
  return { bytes: message({ 1: row, 2: all.toSpliced(bad.at, 0, mutation) }), code };
}

const entry = fc.record({
  good: fc.array(
    fc.oneof(
      { weight: 5, arbitrary: fc.constant('a cell') },
      { weight: 2, arbitrary: fc.constantFrom(...Object.keys(GOOD)) },
    ),
    { maxLength: 4 },
  ),
  bad: fc.option(fc.record({ at: fc.nat({ max: 4 }), what: fc.constantFrom(...Object.keys(BAD), ...BAD_ENTRIES) }), {
    nil: undefined,
    freq: 2,
  }),
});

for (const { name, open } of DOORS.filter((door) => door.isServer)) {
  describe(`malformed entries of batches: ${name}`, () => {
    let door: OpenDoor;
    let client: WireClient;

    before(async () => {
      door = await open();
      client = wireClientOf(door, SEED);
      const families = [
        { name: 'f' },
        { name: 'sum', valueType: { aggregate: { kind: 'sum', input: 'int64' } } },
      ] as const;
      await door.service.createTable(door.context, {
        name: TABLE,
        families,
        splits: ['row 0005'],
        granularity: 'millis',
        deletionProtection: false,
      });
    });
    after(async () => {
      client.close();
      await door.close();
    });

    async function statusesOf(entries: readonly Entry[]): Promise<(number | undefined)[]> {
      const codes: (number | undefined)[] = new Array(entries.length).fill(undefined);
      for await (const bytes of client.stream(
        METHOD,
        message({ 1: TABLE, 2: entries.map((one) => one.bytes) }),
        door.context,
      )) {
        for (const entryBytes of fieldsOf(bytes).get(1) ?? []) {
          const answer = fieldsOf(entryBytes as Buffer);
          const [index = 0] = answer.get(1) ?? [];
          const [status = Buffer.alloc(0)] = answer.get(2) ?? [];
          const [code = Code.OK] = fieldsOf(status as Buffer).get(1) ?? [];
          codes[index as number] = code as number;
        }
      }
      return codes;
    }

    async function rowsWritten(): Promise<string[]> {
      const rows = new Set<string>();
      for await (const { fragments } of door.service.readRows(door.context, { table: TABLE }))
        for (const { row } of fragments) rows.add(row);
      return [...rows];
    }

    const rowAt = (i: number): string => `row ${String(i).padStart(4, '0')}`;

    test(`exactly the good entries of random batches are applied, seed ${SEED}`, async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(entry, { minLength: 1, maxLength: 12 }), async (given) => {
          const entries = given.map(({ good, bad }, i) => entryOf(rowAt(i), good, bad));
          assert.deepEqual(
            await statusesOf(entries),
            entries.map(({ code }) => code ?? Code.OK),
          );
          assert.deepEqual(
            await rowsWritten(),
            entries.flatMap(({ code }, i) => (code === undefined ? [rowAt(i)] : [])),
          );
          await door.service.dropRowRange(door.context, TABLE, { start: '', end: undefined });
        }),
        { seed: SEED, numRuns: 60, endOnFailure: true },
      );
    });

    test('each malformed mutation alone, between two good entries', async () => {
      for (const [what, [, code]] of Object.entries(BAD)) {
        const entries = [
          entryOf(rowAt(0), ['a cell']),
          entryOf(rowAt(1), ['a cell'], { at: 1, what }),
          entryOf(rowAt(2), ['a cell']),
        ];
        assert.deepEqual(await statusesOf(entries), [Code.OK, code, Code.OK], what);
        assert.deepEqual(await rowsWritten(), [rowAt(0), rowAt(2)]);
        await door.service.dropRowRange(door.context, TABLE, { start: '', end: undefined });
      }
    });

    test('thousands of malformed entries, of which every tenth is good', async () => {
      const kinds = Object.keys(BAD);
      const entries = Array.from({ length: 5000 }, (_, i) =>
        entryOf(rowAt(i), [], i % 10 === 0 ? undefined : { at: 0, what: kinds[i % kinds.length] as string }),
      );
      assert.deepEqual(
        await statusesOf(entries),
        entries.map(({ code }) => code ?? Code.OK),
      );
      assert.deepEqual(
        await rowsWritten(),
        entries.flatMap(({ code }, i) => (code === undefined ? [rowAt(i)] : [])),
      );
    });
  });
}
