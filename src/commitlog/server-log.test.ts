import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AssertionError, BigtableError, Code, codeName } from '../base/index.ts';
import {
  type CrashChoice,
  type FileFaults,
  type FileOperation,
  ManualClock,
  MemoryFileSystem,
  MemorySlotStore,
  SeededRandom,
  withSlotLogs,
} from '../env/index.ts';
import { type NewRecord, Origin } from './record.ts';
import { readRecords, readReplayedAppends } from './log-reader.ts';
import { type Appended, ServerLog } from './server-log.ts';

const PATH = 'servers/one/log-a';

function record(text: string, bytes: Uint8Array = Buffer.from(text)): NewRecord {
  return {
    tableId: '00000001',
    epoch: 1,
    commitMicros: 1000,
    origin: Origin.user,
    body: {
      kind: 'rows',
      rows: [{ row: text, mutations: [{ kind: 'setCell', family: 'f', qualifier: '', timestamp: 1, value: bytes }] }],
    },
  };
}

interface Logged {
  readonly position: number;
  readonly sequence: number;
  readonly row: string;
}

async function logged(fileSystem: MemoryFileSystem): Promise<Logged[]> {
  const found: Logged[] = [];
  for await (const { position, record: one } of readRecords(fileSystem, PATH)) {
    assert.ok(one.body.kind === 'rows');
    found.push({ position, sequence: one.sequence, row: one.body.rows[0]?.row ?? '' });
  }
  return found;
}

/** A file system whose operations of some kinds wait until the test releases them, or fail. */
interface Controlled {
  readonly fileSystem: MemoryFileSystem;
  /** Returns the function that releases them. */
  readonly hold: (operation: FileOperation) => () => void;
  readonly failNext: (operation: FileOperation, error: unknown) => void;
}

function controlled(): Controlled {
  const gates = new Map<FileOperation, Promise<void>>();
  const failures = new Map<FileOperation, unknown>();
  const faults: FileFaults = async (operation) => {
    await gates.get(operation);
    const error = failures.get(operation);
    failures.delete(operation);
    if (error) throw error;
  };
  const hold = (operation: FileOperation): (() => void) => {
    let release = (): void => undefined;
    gates.set(operation, new Promise((resolve) => (release = resolve)));
    return () => {
      gates.delete(operation);
      release();
    };
  };
  return {
    fileSystem: new MemoryFileSystem({ faults }),
    hold,
    failNext: (operation, error) => void failures.set(operation, error),
  };
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

describe('group commit', () => {
  test('sequence numbers and acknowledgements are in the order of the calls', async () => {
    const fileSystem = new MemoryFileSystem();
    const log = await ServerLog.open({ fileSystem, path: PATH, firstSequence: 41 });
    assert.equal(log.path, PATH);
    const acknowledged: number[] = [];
    const all: Promise<unknown>[] = [];
    for (let i = 0; i < 50; i++) {
      const {
        sequence,
        append: { durable },
      } = log.append(record(`row ${i}`));
      assert.equal(sequence, 41 + i);
      all.push(durable.then(() => acknowledged.push(sequence)));
      if (i % 7 === 0) await turn();
    }
    await Promise.all(all);
    assert.deepEqual(
      acknowledged,
      Array.from({ length: 50 }, (_, i) => 41 + i),
    );
    assert.deepEqual(
      (await logged(fileSystem)).map(({ sequence, row }) => [sequence, row]),
      acknowledged.map((n) => [n, `row ${n - 41}`]),
    );
  });

  test('records appended synchronously share one append; those that arrive while it is in flight share the next', async () => {
    const { fileSystem, hold } = controlled();
    const log = await ServerLog.open({ fileSystem, path: PATH });
    const release = hold('syncLog');
    const first = Array.from({ length: 10 }, (_, i) => log.append(record(`first ${i}`)).append.durable);
    await turn();
    const second: Promise<number>[] = [];
    for (let i = 0; i < 100; i++) {
      second.push(log.append(record(`second ${i}`)).append.durable);
      if (i % 10 === 0) await turn();
    }
    let early = 0;
    for (const durable of [...first, ...second]) void durable.then(() => early++);
    await turn();
    assert.equal(early, 0, 'nothing is acknowledged before its sync');
    release();
    const [firstAt] = await Promise.all(first);
    const [secondAt] = await Promise.all(second);
    assert.deepEqual(fileSystem.counts, { written: 2, synced: 2 });
    assert.deepEqual(
      (await logged(fileSystem)).map(({ position }) => position),
      [...first.map(() => firstAt), ...second.map(() => secondAt)],
    );
  });

  test('records that are acknowledged early are taken until 4 MiB wait for their sync', async () => {
    const { fileSystem, hold } = controlled();
    const log = await ServerLog.open({ fileSystem, path: PATH });
    const release = hold('syncLog');
    const all: Promise<number>[] = [];
    while (log.pendingBytes < 4 << 20) {
      const appended = log.appendReserved(record('row', Buffer.alloc(100_000, 1)));
      if (appended instanceof Promise) await appended;
      else all.push(appended.append.durable);
    }
    assert.ok(log.pendingBytes < (4 << 20) + 101_000, `${log.pendingBytes} bytes wait`);
    const wait = log.appendReserved(record('row'));
    assert.ok(wait instanceof Promise, 'one more is taken');
    let waited = false;
    void wait.then(() => (waited = true));
    await turn();
    assert.equal(waited, false);
    release();
    await wait;
    await Promise.all(all);
    assert.equal((await logged(fileSystem)).length, all.length);
  });

  test('a full disk refuses a record before it is acknowledged early, never after; it refuses others without harm', async () => {
    const { fileSystem, hold } = controlled();
    const failures: string[] = [];
    const log = await ServerLog.open({ fileSystem, path: PATH, onFailure: ({ message }) => failures.push(message) });
    const early = async (row: string, bytes = 1000): Promise<void> => {
      for (;;) {
        const appended = log.appendReserved(record(row, Buffer.alloc(bytes)));
        if (!(appended instanceof Promise)) return;
        await appended;
      }
    };
    for (let round = 0; round < 3; round++) {
      await early('first');
      const release = hold('appendReserved');
      // reservations that are under way
      await turn();
      fileSystem.freeBytes = 0;
      const before: string[] = [];
      const refused: unknown[] = [];
      const others: Promise<unknown>[] = [];
      for (let i = 0; refused.length < 20; i++) {
        const row = `${round} ${i}`;
        await early(row, 20_000).then(
          () => before.push(row),
          (error: unknown) => refused.push(error),
        );
        if (i % 7 === 0)
          others.push(
            log.append(record('refused', Buffer.alloc(50_000))).append.durable.then(
              () => 'written',
              (error: BigtableError) => error.code,
            ),
          );
      }
      assert.ok(before.length > 10, `${before.length} records had room`);
      for (const error of refused)
        assert.ok(error instanceof BigtableError && error.code === Code.RESOURCE_EXHAUSTED, String(error));
      release();
      for (const outcome of await Promise.all(others)) assert.equal(outcome, Code.RESOURCE_EXHAUSTED);
      fileSystem.freeBytes = 10 << 20;
      await log.append(record('there is room again')).append.durable;
      const rows = new Set((await logged(fileSystem)).map(({ row }) => row));
      assert.deepEqual(
        before.filter((row) => !rows.has(row)),
        [],
      );
      assert.equal(rows.has('refused'), false);
    }
    assert.deepEqual(failures, []);
    // larger than what is reserved at a time
    fileSystem.freeBytes = 2 << 20;
    await assert.rejects(early('too large', 6 << 20), { code: Code.RESOURCE_EXHAUSTED });
    fileSystem.freeBytes = 5 << 20;
    await Promise.all([early('large', 3 << 20), early('small'), early('other')]);
    await log.close();
    assert.deepEqual(
      (await logged(fileSystem))
        .slice(-3)
        .map(({ row }) => row)
        .sort(),
      ['large', 'other', 'small'],
    );
  });

  test('an append into reserved space that fails is a failure of the log, and so is a reservation that fails for any reason but lack of space', async () => {
    for (const operation of ['appendReserved', 'reserveLog'] as const) {
      const { fileSystem, failNext } = controlled();
      const failures: string[] = [];
      const log = await ServerLog.open({ fileSystem, path: PATH, onFailure: ({ message }) => failures.push(message) });
      failNext(operation, new BigtableError(Code.UNAVAILABLE, 'i/o error'));
      let outcome = log.appendReserved(record('early'));
      if (operation === 'reserveLog') {
        await assert.rejects(outcome as Promise<void>, { code: Code.UNAVAILABLE });
      } else {
        for (; outcome instanceof Promise; outcome = log.appendReserved(record('early'))) await outcome;
        await assert.rejects(outcome.append.durable, { code: Code.UNAVAILABLE });
      }
      assert.equal(failures.length, 1);
      assert.throws(() => log.appendReserved(record('late')), { code: Code.UNAVAILABLE });
      await log.close();
    }
  });

  test('appends use up the storage reserved for them, however many they are', async () => {
    const freeBytes = 1 << 30;
    const fileSystem = new MemoryFileSystem();
    fileSystem.freeBytes = freeBytes;
    const log = await ServerLog.open({ fileSystem, path: PATH });
    const unusedBytes = (): number => freeBytes - fileSystem.freeBytes - log.sizeBytes();
    const appendMany = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        const appended = log.appendReserved(record('row'));
        if (appended instanceof Promise) await appended;
        else await appended.append.durable;
      }
    };
    await appendMany(20_000);
    const before = unusedBytes();
    await appendMany(60_000);
    // one piece of a reservation more or less may be unused, however long the log has been written
    assert.ok(unusedBytes() <= before + (1 << 20), `${before} bytes were reserved and unused, then ${unusedBytes()}`);
    await log.close();
  });

  test('a batch is bounded in records and in bytes', async () => {
    const { fileSystem, hold } = controlled();
    const log = await ServerLog.open({ fileSystem, path: PATH });
    for (const [count, bytes] of [
      [5000, 10],
      [400, 20_000],
      [3, 5_000_000],
    ] as const) {
      const release = hold('syncLog');
      const all = [log.append(record('alone')).append.durable];
      await turn();
      for (let i = 0; i < count; i++) all.push(log.append(record(`${i}`, Buffer.alloc(bytes))).append.durable);
      release();
      await Promise.all(all);
    }
    for await (const { bytes } of fileSystem.readLog(PATH)) {
      const { length } = bytes;
      assert.ok(length < 1.1 * 2 ** 20 || (length > 5_000_000 && length < 5_000_200), `${length} bytes`);
    }
    const perAppend = new Map<number, number>();
    for (const { position } of await logged(fileSystem)) perAppend.set(position, (perAppend.get(position) ?? 0) + 1);
    assert.ok(Math.max(...perAppend.values()) <= 1024);
    assert.ok(perAppend.size >= 3 + 5 + 8 + 3, `${perAppend.size} appends`);
  });

  test('pending bytes grow with records that wait and shrink with those that are durable', async () => {
    const { fileSystem, hold } = controlled();
    const log = await ServerLog.open({ fileSystem, path: PATH });
    assert.equal(log.pendingBytes, 0);
    const release = hold('syncLog');
    const all = Array.from({ length: 50 }, () => log.append(record('x', Buffer.alloc(100_000))).append.durable);
    assert.ok(log.pendingBytes > 5_000_000 && log.pendingBytes < 5_100_000, `${log.pendingBytes}`);
    await turn();
    assert.ok(log.pendingBytes > 5_000_000);
    release();
    await Promise.all(all);
    await turn();
    assert.equal(log.pendingBytes, 0);
    assert.ok(log.sizeBytes() > 5_000_000);
  });

  test('a record that cannot be encoded is refused immediately, takes no number and affects no other', async () => {
    const fileSystem = new MemoryFileSystem();
    const log = await ServerLog.open({ fileSystem, path: PATH });
    const bad: NewRecord = { ...record('bad'), epoch: -1 };
    assert.throws(() => log.append(bad), AssertionError);
    await turn();
    assert.equal(log.append(record('one')).sequence, 1);
    assert.throws(() => log.append(bad), AssertionError);
    const last = log.append(record('two'));
    assert.equal(last.sequence, 2);
    await last.append.durable;
    assert.deepEqual(
      (await logged(fileSystem)).map(({ row }) => row),
      ['one', 'two'],
    );
    assert.equal(log.pendingBytes, 0);
  });

  test('closing writes all pending records, and nothing after them', async () => {
    const { fileSystem, hold } = controlled();
    const log = await ServerLog.open({ fileSystem, path: PATH });
    const release = hold('syncLog');
    const durable = log.append(record('pending')).append.durable;
    const closing = log.close();
    throwsCode(() => log.append(record('late')), Code.FAILED_PRECONDITION);
    release();
    await closing;
    await durable;
    assert.deepEqual(
      (await logged(fileSystem)).map(({ row }) => row),
      ['pending'],
    );
  });

  test('a log is opened once', async () => {
    const fileSystem = new MemoryFileSystem();
    await ServerLog.open({ fileSystem, path: PATH });
    await fails(ServerLog.open({ fileSystem, path: PATH }), Code.ALREADY_EXISTS);
  });
});

describe('failures of the log', () => {
  test('after an unknown outcome everything pending and everything later is refused', async () => {
    const { fileSystem, hold, failNext } = controlled();
    const log = await ServerLog.open({ fileSystem, path: PATH });
    await log.append(record('kept')).append.durable;
    const release = hold('syncLog');
    const inFlight = log.append(record('unknown')).append.durable;
    await turn();
    const waiting = Array.from({ length: 3000 }, (_, i) => log.append(record(`waiting ${i}`)).append.durable);
    failNext('syncLog', new Error('the disk is gone'));
    release();
    const unknown = await fails(inFlight, Code.UNAVAILABLE);
    assert.match(unknown.message, /its outcome is unknown/);
    for (const durable of waiting)
      assert.match((await fails(durable, Code.UNAVAILABLE)).message, /not written: an earlier append failed/);
    assert.match(
      throwsCode(() => log.append(record('late')), Code.UNAVAILABLE).message,
      /not written: the log failed before/,
    );
    assert.equal(log.failed, unknown);
    await turn();
    assert.equal(log.pendingBytes, 0);
    const rows = (await logged(fileSystem)).map(({ row }) => row);
    assert.ok(rows.length <= 2 && rows[0] === 'kept', `${rows}`);
    await log.close();
  });

  test('a fenced log refuses as one of unknown outcome', async () => {
    const fileSystem = new MemoryFileSystem();
    const log = await ServerLog.open({ fileSystem, path: PATH });
    await log.append(record('kept')).append.durable;
    await fileSystem.fence(PATH);
    await fails(log.append(record('late')).append.durable, Code.UNAVAILABLE);
    throwsCode(() => log.append(record('later')), Code.UNAVAILABLE);
    assert.deepEqual(
      (await logged(fileSystem)).map(({ row }) => row),
      ['kept'],
    );
  });

  test('a refused append does not fail records with reserved storage', async () => {
    const { fileSystem, hold, failNext } = controlled();
    const log = await ServerLog.open({ fileSystem, path: PATH });
    const reserve = async (row: string): Promise<Appended> => {
      for (;;) {
        const appended = log.appendReserved(record(row));
        if (!(appended instanceof Promise)) return appended;
        await appended;
      }
    };
    await (await reserve('one')).append.durable;
    const release = hold('appendLog');
    const refused = [log.append(record('two'))];
    await turn();
    const kept = [await reserve('three')];
    refused.push(log.append(record('four')));
    kept.push(await reserve('five'));
    failNext('appendLog', new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full'));
    release();
    for (const { append } of refused) await fails(append.durable, Code.RESOURCE_EXHAUSTED);
    for (const { append } of kept) await append.durable;
    assert.deepEqual(
      (await logged(fileSystem)).map(({ row }) => row),
      ['one', 'three', 'five'],
    );
    await log.close();
  });

  test('a refused append fails the records that wait; the log continues and their numbers are not reused', async () => {
    const { fileSystem, hold, failNext } = controlled();
    const log = await ServerLog.open({ fileSystem, path: PATH });
    await log.append(record('one')).append.durable;
    const release = hold('appendLog');
    const refused = [log.append(record('two')), log.append(record('three'))];
    await turn();
    // one batch that is full, and one that gathers
    for (let i = 0; i < 1030; i++) refused.push(log.append(record('waits')));
    failNext('appendLog', new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full'));
    release();
    await fails(refused[0]!.append.durable, Code.RESOURCE_EXHAUSTED);
    for (const { append } of refused) assert.equal(append.failure?.code, Code.RESOURCE_EXHAUSTED, 'known immediately');
    const kept = log.append(record('kept'));
    for (const { append } of refused) await fails(append.durable, Code.RESOURCE_EXHAUSTED);
    await kept.append.durable;
    assert.equal(kept.append.failure, undefined);
    assert.equal(log.failed, undefined);
    assert.equal(log.pendingBytes, 0);
    assert.deepEqual(
      (await logged(fileSystem)).map(({ sequence, row }) => [sequence, row]),
      [
        [1, 'one'],
        [1034, 'kept'],
      ],
    );
  });

  test('a rejection that no caller handles does not end the process', async () => {
    const { fileSystem, failNext } = controlled();
    const log = await ServerLog.open({ fileSystem, path: PATH });
    failNext('syncLog', new Error('the disk is gone'));
    log.append(record('no caller waits'));
    for (let i = 0; i < 3; i++) await turn();
    assert.ok(log.failed);
  });

  const delayLists = fc.array(fc.nat(3), { minLength: 1, maxLength: 40 });
  const choices = fc.constantFrom<CrashChoice>('nothing', 'torn', 'all');

  test('no acknowledgement precedes its sync, whatever the delays; after a crash every acknowledged record is in the log', async (t) => {
    let syncs = 0;
    let acknowledgements = 0;
    await fc.assert(
      fc.asyncProperty(delayLists, fc.nat(60), choices, async (delays, failAt, choice) => {
        let operations = 0;
        const faults: FileFaults = async (operation) => {
          if (operation !== 'appendLog' && operation !== 'syncLog') return;
          for (let i = delays[operations % delays.length] ?? 0; i > 0; i--) await turn();
          if (operations++ === failAt)
            throw operation === 'appendLog' ? new BigtableError(Code.RESOURCE_EXHAUSTED, 'full') : new Error('gone');
        };
        const fileSystem = new MemoryFileSystem({ faults });
        const log = await ServerLog.open({ fileSystem, path: PATH });
        const acknowledged: number[] = [];
        const positions = new Set<number>();
        let last = 0;
        for (const [i, delay] of delays.entries()) {
          if (log.failed) break;
          const {
            sequence,
            append: { durable },
          } = log.append(record(`${i}`));
          last = sequence;
          durable.then(
            (position) => {
              acknowledged.push(sequence);
              positions.add(position);
              assert.ok(
                positions.size <= fileSystem.counts.synced,
                `${positions.size} acknowledged, ${fileSystem.counts.synced} synced`,
              );
            },
            () => undefined,
          );
          for (let n = delay; n > 0; n--) await turn();
        }
        await turn();
        const atCrash = [...acknowledged];
        syncs += fileSystem.counts.synced;
        acknowledgements += positions.size;
        const sequences = (await logged(fileSystem.crash(choice, () => undefined))).map(({ sequence }) => sequence);
        assert.deepEqual(
          sequences,
          [...sequences].sort((a, b) => a - b),
        );
        assert.equal(new Set(sequences).size, sequences.length);
        assert.ok(sequences.every((sequence) => sequence <= last));
        for (const sequence of atCrash)
          assert.ok(sequences.includes(sequence), `record ${sequence} was acknowledged and is lost`);
      }),
      { numRuns: 100 },
    );
    t.diagnostic(`${syncs} syncs, ${acknowledgements} acknowledgements`);
  });
});

describe('trimming', () => {
  test('happens only once an append that records it is durable', async () => {
    const { fileSystem, hold } = controlled();
    const log = await ServerLog.open({ fileSystem, path: PATH });
    const positions: number[] = [];
    for (let i = 0; i < 10; i++) positions.push(await log.append(record(`${i}`)).append.durable);
    log.trimBefore(positions[6] as number);
    log.trimBefore(positions[4] as number);
    await turn();
    assert.equal((await logged(fileSystem)).length, 10);
    const release = hold('syncLog');
    const durable = log.append(record('10')).append.durable;
    await turn();
    assert.equal((await logged(fileSystem)).length >= 10, true);
    release();
    await durable;
    await turn();
    assert.deepEqual(
      (await logged(fileSystem)).map(({ row }) => row),
      ['6', '7', '8', '9', '10'],
    );
  });

  for (const kind of ['of a file system', 'of slots'])
    test(`a log ${kind} that is trimmed while it is read is not damaged`, async () => {
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 0, max: 12 }), async (trimmed, at) => {
          const files = new MemoryFileSystem();
          const random = new SeededRandom(1);
          const fileSystem =
            kind === 'of slots'
              ? withSlotLogs(files, new MemorySlotStore(), { clock: new ManualClock(), random })
              : files;
          const log = await ServerLog.open({ fileSystem, path: PATH });
          const positions: number[] = [];
          for (let i = 0; i < 12; i++) positions.push(await log.append(record(`${i}`)).append.durable);
          const seen: number[] = [];
          for await (const { record: one } of readRecords(fileSystem, PATH)) {
            seen.push(one.sequence);
            if (seen.length !== at + 1) continue;
            log.trimBefore(positions[trimmed - 1] as number);
            // one says so in its header, the next one in its slot
            for (const name of ['says so', 'follows']) await log.append(record(name)).append.durable;
            for (let i = 0; i < 10; i++) await turn();
          }
          assert.ok(seen.includes(12), 'all that was there and was not trimmed is read');
        }),
      );
    });

  test('what is kept though no replay needs it is there, and is not replayed', async () => {
    const fileSystem = new MemoryFileSystem();
    const log = await ServerLog.open({ fileSystem, path: PATH });
    const positions: number[] = [];
    for (let i = 0; i < 10; i++) positions.push(await log.append(record(`${i}`)).append.durable);
    const replayed = async (): Promise<number[]> => {
      const sequences: number[] = [];
      for await (const { records } of readReplayedAppends(fileSystem, PATH))
        for (const { sequence } of records) sequences.push(sequence);
      return sequences;
    };
    log.trimBefore(positions[6]!, positions[2]);
    assert.equal((await replayed()).length, 10, 'nothing says so yet');
    for (let i = 10; i < 12; i++) await log.append(record(`${i}`)).append.durable;
    await turn();
    assert.deepEqual((await logged(fileSystem)).map(({ row }) => row)[0], '2');
    assert.deepEqual(await replayed(), [7, 8, 9, 10, 11, 12]);
    // nothing is kept any more
    log.trimBefore(positions[8]!);
    await log.append(record('12')).append.durable;
    await turn();
    assert.deepEqual(await replayed(), [9, 10, 11, 12, 13]);
    log.trimBefore(Number.MAX_SAFE_INTEGER, positions[9]);
    await log.append(record('13')).append.durable;
    assert.deepEqual(await replayed(), [14], 'no append that is still to come is passed over');
  });

  test('all of the log may be trimmed, and no more', async () => {
    const fileSystem = new MemoryFileSystem();
    const log = await ServerLog.open({ fileSystem, path: PATH });
    log.trimBefore(Number.MAX_SAFE_INTEGER);
    await log.append(record('one')).append.durable;
    log.trimBefore(Number.POSITIVE_INFINITY);
    await log.append(record('two')).append.durable;
    await turn();
    assert.deepEqual(
      (await logged(fileSystem)).map(({ row }) => row),
      ['two'],
    );
  });

  test('a trim that failed is retried with the next append', async () => {
    const { fileSystem, failNext } = controlled();
    const log = await ServerLog.open({ fileSystem, path: PATH });
    const position = await log.append(record('one')).append.durable;
    log.trimBefore(position + 1);
    failNext('trimLog', new Error('not now'));
    await log.append(record('two')).append.durable;
    await turn();
    assert.deepEqual(
      (await logged(fileSystem)).map(({ row }) => row),
      ['one', 'two'],
    );
    await log.append(record('three')).append.durable;
    await turn();
    assert.deepEqual(
      (await logged(fileSystem)).map(({ row }) => row),
      ['two', 'three'],
    );
  });
});

async function fails(call: Promise<unknown>, code: Code): Promise<BigtableError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return hasCode(error, code);
}

function throwsCode(call: () => unknown, code: Code): BigtableError {
  try {
    call();
  } catch (error) {
    return hasCode(error, code);
  }
  throw new Error('nothing was thrown');
}

function hasCode(error: unknown, code: Code): BigtableError {
  assert.ok(error instanceof BigtableError, `expected a BigtableError, not ${error}`);
  assert.equal(codeName(error.code), codeName(code), error.message);
  return error;
}
