import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CorruptionError } from '../base/index.ts';
import { type NewRecord, Origin, ServerLog } from '../commitlog/index.ts';
import { MemoryFileSystem } from '../env/index.ts';
import type { Mutation } from '../model/index.ts';
import { type InspectedAppend, inspectLog, type LogPart } from './log.ts';

const PATH = 'logs/one';

function change(row: string, ...mutations: Mutation[]): NewRecord {
  return {
    tableId: '00000010',
    epoch: 3,
    commitMicros: 77,
    origin: Origin.user,
    body: { kind: 'rows', rows: [{ row, mutations }] },
  };
}

function setCell(value: string): Mutation {
  return { kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1, value: Buffer.from(value) };
}

async function appends(fileSystem: Pick<MemoryFileSystem, 'readLog'>, part?: LogPart): Promise<InspectedAppend[]> {
  const found: InspectedAppend[] = [];
  for await (const append of inspectLog(fileSystem, PATH, part)) found.push(append);
  return found;
}

/** A log with `batches` of records, each batch in an append of its own; returns where they begin. */
async function logOf(fileSystem: MemoryFileSystem, batches: readonly (readonly NewRecord[])[]): Promise<number[]> {
  const log = await ServerLog.open({ fileSystem, path: PATH });
  const positions: number[] = [];
  for (const batch of batches) {
    const [first] = await Promise.all(batch.map((record) => log.append(record).append.durable));
    positions.push(first as number);
  }
  await log.close();
  return positions;
}

describe('inspecting a log', () => {
  test('returns appends with their positions and sizes, and records with their changes', async () => {
    const fileSystem = new MemoryFileSystem();
    const batches = [
      [change('a', setCell('xyz'), setCell('12')), change('b', { kind: 'deleteFromRow' })],
      [
        change(
          'c',
          { kind: 'addToCell', family: 'n', qualifier: 'q', timestamp: 1, input: 5 },
          { kind: 'mergeToCell', family: 'n', qualifier: 'q', timestamp: 1, state: Buffer.alloc(8) },
        ),
      ],
    ];
    const positions = await logOf(fileSystem, batches);
    const found = await appends(fileSystem);
    assert.deepEqual(
      found.map(({ position }) => position),
      positions,
    );
    const sizes: number[] = [];
    for await (const { bytes } of fileSystem.readLog(PATH)) sizes.push(bytes.length);
    assert.deepEqual(
      found.map(({ sizeBytes }) => sizeBytes),
      sizes,
    );
    const records = found.flatMap((append) => append.records);
    assert.deepEqual(
      records.map(({ sequence, epoch, tableId, commitMicros }) => [sequence, epoch, tableId, commitMicros]),
      [
        [1, 3, '00000010', 77],
        [2, 3, '00000010', 77],
        [3, 3, '00000010', 77],
      ],
    );
    assert.deepEqual(
      records.map(({ change: one }) => one),
      [
        { kind: 'rows', rows: 1, firstRow: 'a', lastRow: 'a', mutations: { setCell: 2 }, valueBytes: 5 },
        { kind: 'rows', rows: 1, firstRow: 'b', lastRow: 'b', mutations: { deleteFromRow: 1 }, valueBytes: 0 },
        {
          kind: 'rows',
          rows: 1,
          firstRow: 'c',
          lastRow: 'c',
          mutations: { addToCell: 1, mergeToCell: 1 },
          valueBytes: 16,
        },
      ],
    );
    assert.deepEqual(records[0]?.record.body.kind === 'rows' && records[0].record.body.rows[0]?.mutations.length, 2);
  });

  test('shows dropped row ranges as they are', async () => {
    const fileSystem = new MemoryFileSystem();
    const range = { start: 'a', end: undefined };
    await logOf(fileSystem, [
      [{ tableId: '00000010', epoch: 1, commitMicros: 1, origin: Origin.user, body: { kind: 'dropRows', range } }],
    ]);
    assert.deepEqual((await appends(fileSystem))[0]?.records[0]?.change, { kind: 'dropRows', range });
  });

  test('returns a part of a log alone', async () => {
    const fileSystem = new MemoryFileSystem();
    const positions = await logOf(
      fileSystem,
      ['a', 'b', 'c', 'd'].map((row) => [change(row, setCell(row))]),
    );
    const part = await appends(fileSystem, { from: positions[1], before: positions[3] });
    assert.deepEqual(
      part.map(({ position }) => position),
      positions.slice(1, 3),
    );
    assert.deepEqual(await appends(fileSystem, { from: (positions[3] as number) + 1 }), []);
  });

  test('a log that does not exist has no appends; one with a hole is corrupt after the appends before the hole', async () => {
    const fileSystem = new MemoryFileSystem();
    assert.deepEqual(await appends(fileSystem), []);
    const positions = await logOf(
      fileSystem,
      ['a', 'b', 'c'].map((row) => [change(row, setCell(row))]),
    );
    const holed = {
      async *readLog(path: string) {
        for await (const append of fileSystem.readLog(path)) if (append.position !== positions[1]) yield append;
      },
    };
    const before: number[] = [];
    await assert.rejects(
      (async () => {
        for await (const { position } of inspectLog(holed, PATH)) before.push(position);
      })(),
      (error) => error instanceof CorruptionError && error.file === PATH && error.offset === positions[2],
    );
    assert.deepEqual(before, positions.slice(0, 1));
  });
});
