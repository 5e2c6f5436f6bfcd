import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CorruptionError } from '../base/index.ts';
import { type FileSystem, type LogAppend, MemoryFileSystem } from '../env/index.ts';
import { AppendEncoder } from './append-encoder.ts';
import { findReplayStart, readRecords, readReplayedAppends } from './log-reader.ts';
import { type NewRecord, Origin } from './record.ts';

const PATH = 'log';

function record(text: string): NewRecord {
  return {
    tableId: '00000001',
    epoch: 1,
    commitMicros: 1000,
    origin: Origin.user,
    body: { kind: 'dropRows', range: { start: text, end: undefined } },
  };
}

interface Written {
  readonly firstSequence: number;
  /** Default: all appends of the log. */
  readonly previous?: number;
  readonly lowWater?: number;
  readonly replayFrom?: number;
  readonly texts: readonly string[];
}

function bytesOf({ previous = 0, firstSequence, lowWater = 0, replayFrom, texts }: Written): Buffer {
  const encoder = new AppendEncoder();
  for (const text of texts) encoder.add(record(text));
  return Buffer.concat(
    encoder.finish({ previous, count: texts.length, firstSequence, lowWater, replayFrom }) as Uint8Array[],
  );
}

/** Makes a log of the appends; returns their positions. */
async function write(fileSystem: FileSystem, appends: readonly (Written | Buffer)[]): Promise<number[]> {
  const log = await fileSystem.openLog(PATH);
  const positions: number[] = [];
  for (const append of appends) {
    const bytes = Buffer.isBuffer(append) ? append : bytesOf({ previous: (positions.at(-1) ?? -1) + 1, ...append });
    positions.push(await log.append([bytes]));
  }
  return positions;
}

async function read(
  fileSystem: FileSystem,
  from?: number,
): Promise<{ texts: string[]; positions: number[]; error?: unknown }> {
  const texts: string[] = [];
  const positions: number[] = [];
  try {
    for await (const { position, record: one } of readRecords(fileSystem, PATH, from)) {
      assert.ok(one.body.kind === 'dropRows');
      texts.push(`${one.sequence} ${one.body.range.start}`);
      positions.push(position);
    }
    return { texts, positions };
  } catch (error) {
    return { texts, positions, error };
  }
}

/** The file system as one that has silently lost appends would be. */
function without(fileSystem: FileSystem, lost: readonly number[]): FileSystem {
  return new Proxy(fileSystem, {
    get: (target, name: keyof FileSystem) => {
      if (name !== 'readLog') return (target[name] as () => unknown).bind(target);
      return async function* (path: string, from?: number): AsyncIterable<LogAppend> {
        for await (const append of target.readLog(path, from)) if (!lost.includes(append.position)) yield append;
      };
    },
  });
}

const FOUR: readonly Written[] = [
  { firstSequence: 1, texts: ['a', 'b'] },
  { firstSequence: 3, texts: ['c'] },
  { firstSequence: 4, texts: ['d', 'e'] },
  { firstSequence: 10, texts: ['f'] },
];

describe('reading records', () => {
  test('all, or from a position on, each with the position of its append', async () => {
    const fileSystem = new MemoryFileSystem();
    const [p0, p1, p2, p3] = (await write(fileSystem, FOUR)) as [number, number, number, number];
    assert.deepEqual(await read(fileSystem), {
      texts: ['1 a', '2 b', '3 c', '4 d', '5 e', '10 f'],
      positions: [p0, p0, p1, p2, p2, p3],
    });
    assert.deepEqual(await read(fileSystem, p2), { texts: ['4 d', '5 e', '10 f'], positions: [p2, p2, p3] });
    assert.deepEqual(await read(fileSystem, p3 + 1), { texts: [], positions: [] });
    assert.deepEqual((await read(new MemoryFileSystem())).texts, [], 'a log that does not exist');
  });

  test('appends that are missing in the middle are corruption', async () => {
    const fileSystem = new MemoryFileSystem();
    const positions = await write(fileSystem, FOUR);
    for (const lost of [[1], [2], [1, 2]]) {
      const outcome = await read(
        without(
          fileSystem,
          lost.map((i) => positions[i] as number),
        ),
      );
      assert.ok(outcome.error instanceof CorruptionError, `without ${lost}`);
      assert.equal(outcome.error.offset, positions[(lost.at(-1) as number) + 1]);
    }
  });

  test('appends that are missing at the beginning are corruption, unless the log says that they were trimmed', async () => {
    const fileSystem = new MemoryFileSystem();
    const positions = await write(fileSystem, FOUR);
    const outcome = await read(without(fileSystem, [positions[0] as number]));
    assert.ok(outcome.error instanceof CorruptionError);
    assert.match(outcome.error.message, /the append at 0 is missing before it; only appends below 0 were trimmed/);
    // from the requested position on nothing is missing
    assert.deepEqual((await read(without(fileSystem, [positions[0] as number]), positions[1])).texts, [
      '3 c',
      '4 d',
      '5 e',
      '10 f',
    ]);

    const trimmed = new MemoryFileSystem();
    const where = await write(
      trimmed,
      FOUR.map((append, i) => (i === 3 ? { ...append, lowWater: (positions[1] as number) + 1 } : append)),
    );
    for (const lost of [[0], [0, 1]]) {
      const rest = await read(
        without(
          trimmed,
          lost.map((i) => where[i] as number),
        ),
      );
      assert.equal(rest.error, undefined);
    }
    assert.ok(
      (await read(without(trimmed, where.slice(0, 3)))).error instanceof CorruptionError,
      'more than was trimmed',
    );
  });

  test('appends that are trimmed while the log is read may be missing after its beginning, if the log says so', async () => {
    for (const [lowWaterOf, isRight] of [
      [2, true],
      [1, false],
    ] as const) {
      const fileSystem = new MemoryFileSystem();
      const positions: number[] = [];
      const log = await fileSystem.openLog(PATH);
      for (const [i, one] of FOUR.entries()) {
        const lowWater = i === 3 ? (positions[lowWaterOf] as number) : 0;
        positions.push(await log.append([bytesOf({ previous: (positions.at(-1) ?? -1) + 1, ...one, lowWater })]));
      }
      const trimmed = new Proxy<FileSystem>(fileSystem, {
        get: (target, name: keyof FileSystem) => {
          if (name !== 'readLog') return (target[name] as () => unknown).bind(target);
          return async function* (path: string): AsyncIterable<LogAppend> {
            for await (const append of target.readLog(path)) {
              const i = positions.indexOf(append.position);
              if (i !== 1) yield i === 2 ? { ...append, afterTrim: true } : append;
            }
          };
        },
      });
      const { texts, error } = await read(trimmed);
      assert.deepEqual(texts, ['1 a', '2 b', '4 d', '5 e', '10 f']);
      if (isRight) assert.equal(error, undefined);
      else assert.ok(error instanceof CorruptionError, `${error}`);
    }
  });

  test('records that go back, or an append that follows another, are corruption', async () => {
    for (const wrong of [{ firstSequence: 2 }, { previous: 0, firstSequence: 3 }, { previous: 2, firstSequence: 3 }]) {
      const second = { ...wrong, texts: ['x'] };
      const fileSystem = new MemoryFileSystem();
      const positions = await write(fileSystem, [FOUR[0] as Written, second]);
      const { error, texts } = await read(fileSystem);
      assert.ok(error instanceof CorruptionError);
      assert.equal(error.offset, positions[1]);
      assert.deepEqual(texts, ['1 a', '2 b']);
    }
  });

  test('bytes that are not an append are corruption, and name the log and the position', async () => {
    const good = bytesOf(FOUR[1] as Written);
    for (const bad of [
      Buffer.alloc(0),
      Buffer.from([1]),
      good.subarray(0, good.length - 1),
      Buffer.concat([good, Buffer.from([7])]),
    ]) {
      const fileSystem = new MemoryFileSystem();
      const positions = await write(fileSystem, [FOUR[0] as Written, bad]);
      const { error, texts } = await read(fileSystem);
      assert.ok(error instanceof CorruptionError, `${error}`);
      assert.deepEqual([error.file, error.offset], [PATH, positions[1]]);
      assert.deepEqual(texts.slice(0, 2), ['1 a', '2 b']);
    }
  });

  test('are replayed from the position on that the newest append names', async () => {
    const sequences = async (fileSystem: FileSystem): Promise<number[]> => {
      const found: number[] = [];
      for await (const { records } of readReplayedAppends(fileSystem, PATH))
        for (const { sequence } of records) found.push(sequence);
      return found;
    };
    const one = (i: number): Written => ({ firstSequence: i, texts: [`${i}`] });
    const plain = new MemoryFileSystem();
    const positions = await write(plain, [1, 2, 3, 4, 5].map(one));
    assert.deepEqual(await sequences(plain), [1, 2, 3, 4, 5]);
    const kept = new MemoryFileSystem();
    await write(kept, [...[1, 2, 3].map(one), { ...one(4), replayFrom: positions[1]! }, one(5)]);
    assert.equal(await findReplayStart(kept, PATH), 0, 'the newest append says nothing');
    const marked = new MemoryFileSystem();
    await write(marked, [...[1, 2, 3, 4].map(one), { ...one(5), replayFrom: positions[2]! }]);
    assert.equal(await findReplayStart(marked, PATH), positions[2]);
    assert.deepEqual(await sequences(marked), [3, 4, 5]);
    // what is not needed may be damaged, what is needed may not be missing
    marked.damage(PATH, positions[0]!);
    assert.deepEqual(await sequences(marked), [3, 4, 5]);
    await assert.rejects(sequences(without(marked, [positions[2]!])), /is missing before it/);
    await assert.rejects(sequences(without(marked, [positions[3]!])), /is missing before it/);
    const between = new MemoryFileSystem();
    await write(between, [...[1, 2, 3, 4].map(one), { ...one(5), replayFrom: positions[1]! + 1 }]);
    assert.deepEqual(await sequences(between), [3, 4, 5], 'no append need be at the position');
    assert.deepEqual(await sequences(new MemoryFileSystem()), []);
  });
});
