import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError } from '../../base/index.ts';
import { ManualClock } from '../../env/index.ts';
import { MutationReader } from './mutation-reader.ts';
import { RequestDecoder } from './request-decoder.ts';
import { MAX_TARGET_BYTES, readTarget, type RowTarget } from './target-reader.ts';

const decoder = new RequestDecoder(new ManualClock());
before(() => decoder.load());

/** A field with a length, as bytes. */
function field(number: number, content: Uint8Array): Buffer {
  assert.ok(number < 16 && content.length < 128);
  return Buffer.concat([Buffer.of((number << 3) | 2, content.length), content]);
}

/** SetCell { family_name: "f", column_qualifier: "q", timestamp_micros: 1000, value: "v" } in a Mutation. */
const SET_CELL = field(
  1,
  Buffer.concat([
    field(1, Buffer.from('f')),
    field(2, Buffer.from('q')),
    Buffer.of(0x18, 0xe8, 0x07),
    field(4, Buffer.from('v')),
  ]),
);
/** ReadModifyWriteRule { family_name: "f", column_qualifier: "q", append_value: "v" }. */
const RULE = Buffer.concat([field(1, Buffer.from('f')), field(2, Buffer.from('q')), field(3, Buffer.from('v'))]);

/** The calls with the number of app_profile_id, a field of a change, and the reader of everything. */
const CALLS = [
  { profile: 4, change: field(3, SET_CELL), read: (reader: MutationReader) => reader.mutateRow() },
  { profile: 7, change: field(4, SET_CELL), read: (reader: MutationReader) => reader.checkAndMutateRow() },
  { profile: 4, change: field(3, RULE), read: (reader: MutationReader) => reader.readModifyWriteRow() },
] as const;
type Call = (typeof CALLS)[number];

async function whole(call: Call, bytes: Buffer): Promise<RowTarget | undefined> {
  const reader = new MutationReader(bytes, decoder, new ManualClock());
  try {
    const { row } = await call.read(reader);
    const { table, appProfile } = reader.target;
    return { table, row, appProfile };
  } catch (error) {
    assert.ok(error instanceof BigtableError);
    return undefined;
  }
}

/** What the whole request says, or nothing where it is refused: its own server is to refuse it. */
async function checkAgreement(call: Call, bytes: Buffer): Promise<RowTarget | undefined> {
  const [expected, target] = [await whole(call, bytes), readTarget(bytes, call.profile, decoder)];
  if (expected !== undefined) assert.deepEqual(target, expected);
  return expected;
}

describe('the reader of table and row', () => {
  const text = fc.constantFrom('', 'r', 'row 2', 'projects/p/instances/i/tables/t', 'ü');

  test('agrees with the whole request, whatever the order of fields, however often they come', async () => {
    let read = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...CALLS),
        fc.array(fc.tuple(fc.integer({ min: 0, max: 8 }), text), { maxLength: 12 }),
        async (call, fields) => {
          const parts = fields.map(([kind, content]) => {
            if (kind === 0) return call.change;
            if (kind === 3) return field(15, Buffer.from(content));
            if (kind === 5) return Buffer.of((14 << 3) | 0, 0x80, 1);
            return field(kind === 4 ? call.profile : 1 + (kind % 2), Buffer.from(content));
          });
          if ((await checkAgreement(call, Buffer.concat(parts))) !== undefined) read++;
        },
      ),
      { numRuns: 500 },
    );
    assert.ok(read > 400, `${read} requests were read`);
  });

  test('agrees with it in damaged bytes: it reads nothing else, and never throws', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...CALLS),
        fc.array(fc.tuple(fc.nat({ max: 1000 }), fc.nat({ max: 255 })), { maxLength: 4 }),
        fc.nat({ max: 60 }),
        async (call, damages, cut) => {
          const bytes = Buffer.concat([
            field(1, Buffer.from('projects/p/instances/i/tables/t')),
            call.change,
            field(2, Buffer.from('row')),
            field(call.profile, Buffer.from('profile')),
            field(2, Buffer.from('other row')),
          ]);
          for (const [at, value] of damages) bytes[at % bytes.length] = value;
          await checkAgreement(call, bytes.subarray(0, Math.max(0, bytes.length - cut)));
        },
      ),
      { numRuns: 3000 },
    );
  });

  test('leaves large requests to the reader that pauses', () => {
    const [name] = CALLS;
    const row = field(2, Buffer.from('r'));
    const change = Buffer.concat(
      Array.from({ length: Math.ceil(MAX_TARGET_BYTES / name.change.length) }, () => name.change),
    );
    assert.equal(readTarget(Buffer.concat([row, change]), name.profile, decoder), undefined);
    assert.equal(readTarget(row, name.profile, decoder)?.row, 'r');
  });
});
