/** Arbitrary rows of METADATA, and their cells as a read returns them; for tests. */
import fc from 'fast-check';
import type { Cell, Mutation } from '../model/index.ts';
import type { MetadataRow } from './metadata-row.ts';

const bytes = fc
  .array(fc.integer({ min: 0, max: 255 }), { maxLength: 10 })
  .map((codes) => String.fromCharCode(...codes));
const count = fc.oneof(fc.nat(), fc.constantFrom(0, 1, Number.MAX_SAFE_INTEGER - 9));
const text = fc.oneof(fc.string(), fc.constantFrom('', '__proto__', 'constructor', 'default'));

const plain = { noNullPrototype: true } as const;

const anyRow: fc.Arbitrary<MetadataRow> = fc.record(
  {
    tableId: fc.integer({ min: 0, max: 0xffff_ffff }).map((id) => id.toString(16).padStart(8, '0')),
    range: fc.record({ start: bytes, end: fc.option(bytes, { nil: undefined }) }, plain),
    server: fc.option(fc.record({ name: text, address: text }, plain), { nil: undefined }),
    epoch: count,
    version: count,
    commitId: text,
    files: fc
      .array(fc.tuple(text, fc.array(text, { maxLength: 3 })), { maxLength: 3 })
      .map((groups) => Object.assign(Object.create(null), Object.fromEntries(groups))),
    redo: fc.record({ epoch: count, sequence: count }, plain),
    logs: fc.array(text, { maxLength: 3 }),
    lastServerMicros: count,
    isOfBackup: fc.constant(false),
    pastOwners: fc.array(
      fc.record(
        { server: text, epoch: count, untilMicros: count, changesFrom: count, changesUntil: count },
        { ...plain, requiredKeys: ['server', 'epoch', 'untilMicros'] },
      ),
      { maxLength: 3 },
    ),
    changesFrom: count,
    changesUntil: count,
  },
  { ...plain, requiredKeys: ['tableId', 'range', 'server', 'epoch', 'version', 'commitId', 'files', 'redo', 'logs'] },
);

/** Only a tablet with past owners has changes that are kept, and an end of them only where they begin. */
export const metadataRow: fc.Arbitrary<MetadataRow> = anyRow.map((row) => {
  const { changesFrom, changesUntil, ...others } = row;
  if (row.pastOwners === undefined || changesFrom === undefined) return others;
  return { ...others, changesFrom, ...(changesUntil !== undefined && { changesUntil }) };
});

/** The cells that setCell mutations write. */
export function cellsOf(mutations: readonly Mutation[]): Cell[] {
  return mutations.flatMap((mutation) => {
    if (mutation.kind !== 'setCell') return [];
    const { family, qualifier, timestamp = 0, value } = mutation;
    return [{ family, qualifier, timestamp, value }];
  });
}
