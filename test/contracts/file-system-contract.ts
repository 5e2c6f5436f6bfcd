/**
 * The contract of every FileSystem, as tests: each adapter runs them with a factory of its own. They use the seam
 * alone, so that a directory, memory and an object store are held to the same words (src/env/seams/file-system.ts).
 *
 * `make` answers a fresh, empty file system. `reopen` ends the present one without closing its writers, as a process
 * that dies does, and answers a new one over the same storage; it is called at most once a test. `close` cleans up.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code, codeName } from '../../src/base/index.ts';
import { APPEND_OVERHEAD_BYTES, type FileSystem, type LogAppend, type LogWriter } from '../../src/env/index.ts';

export interface FileSystemUnderTest {
  readonly fileSystem: FileSystem;
  readonly reopen: () => Promise<FileSystem>;
  /** Lets the storage take about `bytes` more, until the next call. */
  readonly setFreeBytes: (bytes: number) => void;
  readonly close?: () => Promise<void>;
}

type MakeFileSystem = () => Promise<FileSystemUnderTest>;
type Body = (fileSystem: FileSystem, subject: FileSystemUnderTest) => Promise<void>;

/** `isLimited`: false for storage that is never full; `setFreeBytes` is not called then. */
export function fileSystemContract(name: string, make: MakeFileSystem, { isLimited = true } = {}): void {
  const contract = (title: string, body: Body): void => {
    test(title, async () => {
      const subject = await make();
      try {
        await body(subject.fileSystem, subject);
      } finally {
        await subject.close?.();
      }
    });
  };
  describe(`file system contract: ${name}`, () => {
    describe('write-once files', () => filesAreWriteOnce(contract));
    describe('reads and lists', () => readsAndLists(contract));
    describe('logs', () => logsKeepWhatTheyAcknowledge(contract));
    describe('ends of logs', () => logsEnd(contract));
    if (isLimited) describe('full storage', () => fullStorageRefuses(contract));
  });
}

type Contract = (title: string, body: Body) => void;

function filesAreWriteOnce(contract: Contract): void {
  contract('a file reads back whole, in the order of its appends', async (fs) => {
    const writer = await fs.create('tables/t1/000001.sst');
    await writer.append(bytes('hello, '));
    await writer.append(new Uint8Array(0));
    await writer.append(bytes('world'));
    await writer.close();
    assert.equal(await fs.size('tables/t1/000001.sst'), 12);
    assert.equal((await fs.read('tables/t1/000001.sst', 0, 12)).toString(), 'hello, world');
  });

  contract('an empty file exists', async (fs) => {
    await writeFile(fs, 'empty', '');
    assert.equal(await fs.size('empty'), 0);
    assert.equal((await fs.read('empty', 0, 0)).length, 0);
    assert.deepEqual(await fs.list(''), [{ path: 'empty', sizeBytes: 0 }]);
  });

  contract('a file is invisible until it is closed', async (fs) => {
    const writer = await fs.create('a/b');
    await writer.append(bytes('half'));
    await fails(fs.size('a/b'), Code.NOT_FOUND);
    await fails(fs.read('a/b', 0, 1), Code.NOT_FOUND);
    assert.deepEqual(await fs.list(''), []);
    await writer.close();
    assert.deepEqual(await fs.list('a/'), [{ path: 'a/b', sizeBytes: 4 }]);
  });

  contract('an aborted file leaves nothing, and its path is free', async (fs) => {
    const writer = await fs.create('a/b');
    await writer.append(bytes('never'));
    await writer.abort();
    await fails(fs.size('a/b'), Code.NOT_FOUND);
    assert.deepEqual(await fs.list(''), []);
    await writeFile(fs, 'a/b', 'now');
    assert.equal(await readText(fs, 'a/b'), 'now');
  });

  contract('appended bytes may be reused', async (fs) => {
    const chunk = Buffer.from('first.');
    const writer = await fs.create('f');
    await writer.append(chunk);
    chunk.write('second');
    await writer.append(chunk);
    chunk.fill(0);
    await writer.close();
    assert.equal(await readText(fs, 'f'), 'first.second');
  });

  contract('of many that create one path together exactly one succeeds', async (fs) => {
    for (let round = 0; round < 10; round++) {
      const path = `race/${round}`;
      const outcomes = await Promise.allSettled(
        Array.from({ length: 8 }, (_, i) => writeFile(fs, path, `writer ${i}`)),
      );
      const winners = outcomes.flatMap((outcome, i) => (outcome.status === 'fulfilled' ? [i] : []));
      assert.equal(winners.length, 1, `${winners.length} winners`);
      for (const outcome of outcomes) if (outcome.status === 'rejected') hasCode(outcome.reason, Code.ALREADY_EXISTS);
      assert.equal(await readText(fs, path), `writer ${winners[0]}`);
    }
  });

  contract('an existing file is never replaced', async (fs) => {
    await writeFile(fs, 'f', 'one');
    await fails(writeFile(fs, 'f', 'two'), Code.ALREADY_EXISTS);
    assert.equal(await readText(fs, 'f'), 'one');
    assert.equal((await fs.list('')).length, 1);
  });

  contract('deleting is idempotent and frees the path', async (fs) => {
    await fs.delete('no/such');
    await writeFile(fs, 'f', 'one');
    await fs.delete('f');
    await fs.delete('f');
    await fails(fs.size('f'), Code.NOT_FOUND);
    await fails(fs.read('f', 0, 1), Code.NOT_FOUND);
    assert.deepEqual(await fs.list(''), []);
    await writeFile(fs, 'f', 'two');
    assert.equal(await readText(fs, 'f'), 'two');
  });

  contract('closed files outlive the process, unclosed ones do not', async (fs, subject) => {
    await writeFile(fs, 'kept/one', 'kept');
    await writeFile(fs, 'gone/one', 'deleted');
    await fs.delete('gone/one');
    const unclosed = await fs.create('open/one');
    await unclosed.append(bytes('half'));
    const again = await subject.reopen();
    assert.deepEqual(await again.list(''), [{ path: 'kept/one', sizeBytes: 4 }]);
    assert.equal(await readText(again, 'kept/one'), 'kept');
    await writeFile(again, 'open/one', 'whole');
    assert.equal(await readText(again, 'open/one'), 'whole');
  });

  contract('paths outside the alphabet are refused', async (fs) => {
    for (const path of ['', '/x', 'x/', 'a//b', '../x', 'a/../b', './x', 'a b', 'a\0b', 'é', 'a\\b']) {
      await fails(writeFile(fs, path, 'x'), Code.INVALID_ARGUMENT);
      await fails(fs.openLog(path), Code.INVALID_ARGUMENT);
    }
    assert.deepEqual(await fs.list(''), []);
  });
}

function readsAndLists(contract: Contract): void {
  contract('ranges read exactly, and not after the end', async (fs) => {
    await writeFile(fs, 'f', '0123456789');
    assert.equal((await fs.read('f', 0, 3)).toString(), '012');
    assert.equal((await fs.read('f', 9, 1)).toString(), '9');
    assert.equal((await fs.read('f', 10, 0)).length, 0);
    await fails(fs.read('f', 10, 1), Code.OUT_OF_RANGE);
    await fails(fs.read('f', 0, 11), Code.OUT_OF_RANGE);
    await fails(fs.read('f', 1000, 1), Code.OUT_OF_RANGE);
    await fails(fs.read('none', 0, 0), Code.NOT_FOUND);
  });

  contract('what was read is the caller’s own', async (fs) => {
    await writeFile(fs, 'f', 'abc');
    (await fs.read('f', 0, 3)).fill(0);
    assert.equal(await readText(fs, 'f'), 'abc');
  });

  contract('a file of several MB of uneven appends reads back by ranges', async (fs) => {
    const whole = pattern(5_000_003, 7);
    const writer = await fs.create('big');
    for (let at = 0, step = 1; at < whole.length; at += step, step = Math.min(step * 3, 1_500_000))
      await writer.append(whole.subarray(at, at + step));
    await writer.close();
    assert.equal(await fs.size('big'), whole.length);
    assert.ok((await fs.read('big', 0, whole.length)).equals(whole));
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length), fc.nat(100_000), async (offset, most) => {
        const length = Math.min(most, whole.length - offset);
        assert.ok((await fs.read('big', offset, length)).equals(whole.subarray(offset, offset + length)));
      }),
      { numRuns: 20 },
    );
  });

  contract('many reads of one file at once', async (fs) => {
    const whole = pattern(300_000, 3);
    await writeFile(fs, 'f', whole);
    const reads = Array.from({ length: 64 }, async (_, i) => {
      const got = await fs.read('f', i * 4000, 5000);
      assert.ok(got.equals(whole.subarray(i * 4000, i * 4000 + 5000)));
    });
    await Promise.all(reads);
  });

  contract('a list shows what begins with the prefix, by path, with sizes, and no log', async (fs) => {
    for (const path of ['t/b', 't/a', 'ta/x', 's', 't/a.2', 'u/v/w', 't/A']) await writeFile(fs, path, path);
    const log = await fs.openLog('t/log');
    await log.append([bytes('x')]);
    const paths = async (prefix: string): Promise<string[]> => (await fs.list(prefix)).map((file) => file.path);
    assert.deepEqual(await paths(''), ['s', 't/A', 't/a', 't/a.2', 't/b', 'ta/x', 'u/v/w']);
    assert.deepEqual(await paths('t/'), ['t/A', 't/a', 't/a.2', 't/b']);
    assert.deepEqual(await paths('t'), ['t/A', 't/a', 't/a.2', 't/b', 'ta/x']);
    assert.deepEqual(await paths('t/a'), ['t/a', 't/a.2']);
    assert.deepEqual(await paths('u/v/'), ['u/v/w']);
    assert.deepEqual(await paths('x/'), []);
    assert.deepEqual(await fs.list('u'), [{ path: 'u/v/w', sizeBytes: 5 }]);
    await log.close();
  });

  contract('a few hundred files list completely', async (fs) => {
    const expected: string[] = [];
    for (let i = 0; i < 300; i++) {
      const path = `many/${String(i).padStart(6, '0')}`;
      expected.push(path);
      await writeFile(fs, path, 'x');
    }
    assert.deepEqual(
      (await fs.list('many/')).map((file) => file.path),
      expected,
    );
  });
}

function logsKeepWhatTheyAcknowledge(contract: Contract): void {
  contract('appends read back in order, one unit each, at ascending positions', async (fs) => {
    const log = await fs.openLog('logs/a');
    const positions: number[] = [];
    for (let i = 0; i < 50; i++) positions.push(await log.append([bytes(`record ${i}, `), bytes('second part')]));
    assertAscending(positions);
    const appends = await readLog(fs, 'logs/a');
    assert.deepEqual(
      appends.map(({ bytes: content }) => content.toString()),
      positions.map((_, i) => `record ${i}, second part`),
    );
    assert.deepEqual(
      appends.map(({ position }) => position),
      positions,
    );
    await log.close();
    assert.deepEqual(await readLog(fs, 'logs/a'), appends);
  });

  contract('a log that does not exist has no appends', async (fs) => {
    assert.deepEqual(await readLog(fs, 'logs/none'), []);
    const log = await fs.openLog('logs/empty');
    assert.deepEqual(await readLog(fs, 'logs/empty'), []);
    await log.close();
  });

  contract('reading from a position skips what lies before it', async (fs) => {
    const { log, positions } = await filledLog(fs, 'log', 10);
    for (const [i, from] of positions.entries()) {
      assert.deepEqual(
        texts(await readLog(fs, 'log', from)),
        Array.from({ length: 10 - i }, (_, k) => `record ${i + k}`),
      );
    }
    assert.deepEqual(await readLog(fs, 'log', (positions[9] as number) + 1), []);
    await log.close();
  });

  contract('the cuts of a log, if it has any, lie at appends and make parts of the size', async (fs) => {
    if (fs.cutLog === undefined) return;
    assert.deepEqual(await fs.cutLog('none', 1000), { sizeBytes: 0, callCostBytes: 0, positions: [] });
    const log = await fs.openLog('log');
    const positions: number[] = [];
    for (let i = 0; i < 20; i++) positions.push(await log.append([pattern(1000, i)]));
    await log.close();
    await fs.fence('log');
    const { callCostBytes, ...cuts } = await fs.cutLog('log', 5000);
    assert.ok(callCostBytes >= 0);
    assert.deepEqual(cuts, { sizeBytes: 20_000, positions: [5, 10, 15].map((i) => positions[i]) });
    for (const from of cuts.positions) assert.equal((await readLog(fs, 'log', from))[0]?.position, from);
  });

  contract('the cuts of a part of a log are those of what is there', async (fs) => {
    if (fs.cutLog === undefined) return;
    const { positions } = await filledLog(fs, 'log', 20);
    const { sizeBytes } = await fs.cutLog('log', 1e6);
    const cuts = await fs.cutLog('log', 1, positions[10]);
    assert.deepEqual(cuts.positions, positions.slice(11));
    assert.ok(cuts.sizeBytes < sizeBytes * 0.6, `${cuts.sizeBytes} of ${sizeBytes}`);
  });

  contract('the tail of a log, if it is known, has its newest append', async (fs) => {
    if (fs.logTail === undefined) return;
    assert.equal(await fs.logTail('none'), 0);
    const log = await fs.openLog('log');
    assert.equal(await fs.logTail('log'), 0);
    let last = 0;
    for (let i = 0; i < 40; i++) {
      last = await log.append([pattern(20_000, i)]);
      assert.ok((await fs.logTail('log')) <= last);
    }
    await log.trimBefore(last);
    await log.append([bytes('record')]);
    const tail = await readLog(fs, 'log', await fs.logTail('log'));
    assert.equal(tail.at(-1)?.bytes.toString(), 'record');
    await log.close();
    await fs.fence('log');
    assert.deepEqual((await readLog(fs, 'log', await fs.logTail('log'))).at(-1), tail.at(-1));
  });

  contract('every acknowledged append outlives the process, the log closed or not', async (fs, subject) => {
    const { log: closed } = await filledLog(fs, 'logs/closed', 20);
    await closed.close();
    const { positions } = await filledLog(fs, 'logs/open', 20);
    const again = await subject.reopen();
    assert.deepEqual(texts(await readLog(again, 'logs/closed')), numbered(20));
    const open = await readLog(again, 'logs/open');
    assert.deepEqual(texts(open), numbered(20));
    assert.deepEqual(
      open.map(({ position }) => position),
      positions,
    );
    assert.deepEqual(await again.listLogs('logs/'), ['logs/closed', 'logs/open']);
    await fails(again.openLog('logs/open'), Code.ALREADY_EXISTS);
  });

  contract('appended parts may be reused once the append is acknowledged', async (fs) => {
    const log = await fs.openLog('log');
    const part = Buffer.from('first.');
    await log.append([part, part]);
    part.write('second');
    await log.append([part]);
    part.fill(0);
    assert.deepEqual(texts(await readLog(fs, 'log')), ['first.first.', 'second']);
    await log.close();
  });

  contract('appends of several MB and of thousands of parts', async (fs, subject) => {
    const log = await fs.openLog('log');
    const large = pattern(6_000_001, 11);
    const parts = Array.from({ length: 5000 }, (_, i) => pattern(i % 40, i));
    await log.append([bytes('small')]);
    await log.append([large]);
    await log.append(parts);
    await log.append([bytes('after')]);
    const expected = [bytes('small'), large, Buffer.concat(parts), bytes('after')];
    const check = async (from: FileSystem): Promise<void> => {
      const got = await readLog(from, 'log');
      assert.equal(got.length, expected.length);
      got.forEach((append, i) => assert.ok(append.bytes.equals(expected[i] as Buffer), `append ${i}`));
    };
    await check(fs);
    await check(await subject.reopen());
  });

  contract('random appends read back, before and after reopening', async (_, subject) => {
    const { fileSystem } = subject;
    const sizes = fc.array(fc.array(fc.oneof(fc.nat(40), fc.nat(9000)), { minLength: 1, maxLength: 5 }), {
      maxLength: 12,
    });
    const written = new Map<string, Buffer[]>();
    let n = 0;
    await fc.assert(
      fc.asyncProperty(sizes, async (appends) => {
        const path = `random/${n++}`;
        const log = await fileSystem.openLog(path);
        const contents: Buffer[] = [];
        for (const lengths of appends) {
          const parts = lengths.map((length, i) => pattern(length + 1, i + n));
          contents.push(Buffer.concat(parts));
          await log.append(parts);
        }
        await log.close();
        written.set(path, contents);
        assert.deepEqual(
          (await readLog(fileSystem, path)).map((append) => append.bytes),
          contents,
        );
      }),
      { numRuns: 10 },
    );
    const again = await subject.reopen();
    for (const [path, contents] of written)
      assert.deepEqual(
        (await readLog(again, path)).map((append) => append.bytes),
        contents,
      );
  });

  contract('a reader may stop early, and a log may be read while it is written', async (fs) => {
    const { log } = await filledLog(fs, 'log', 10);
    let seen = 0;
    for await (const append of fs.readLog('log')) {
      assert.equal(append.bytes.toString(), `record ${seen}`);
      if (++seen === 3) break;
    }
    await log.append([bytes('record 10')]);
    assert.deepEqual(texts(await readLog(fs, 'log')), numbered(11));
    await log.close();
  });
}

function logsEnd(contract: Contract): void {
  contract('a log is opened once', async (fs) => {
    const log = await fs.openLog('log');
    await fails(fs.openLog('log'), Code.ALREADY_EXISTS);
    await log.append([bytes('x')]);
    await log.close();
    await fails(fs.openLog('log'), Code.ALREADY_EXISTS);
    const openers = await Promise.allSettled(Array.from({ length: 6 }, () => fs.openLog('race')));
    assert.equal(openers.filter((opener) => opener.status === 'fulfilled').length, 1);
  });

  contract('a fence makes every later append of the earlier writer fail', async (fs, subject) => {
    const { log } = await filledLog(fs, 'log', 5);
    await fs.fence('log');
    const first = await failure(log.append([bytes('late')]));
    assert.notEqual(first.code, Code.RESOURCE_EXHAUSTED, 'that code promises that the log goes on');
    await fails(log.append([bytes('later')]), Code.FAILED_PRECONDITION);
    assert.deepEqual(texts(await readLog(fs, 'log')), numbered(5));
    await fs.fence('log');
    assert.deepEqual(texts(await readLog(fs, 'log')), numbered(5));
    const again = await subject.reopen();
    assert.deepEqual(texts(await readLog(again, 'log')), numbered(5));
    await fails(again.openLog('log'), Code.ALREADY_EXISTS);
  });

  contract('a fence after a restart keeps the log readable', async (fs, subject) => {
    await filledLog(fs, 'log', 5);
    const again = await subject.reopen();
    await again.fence('log');
    await again.fence('none');
    assert.deepEqual(texts(await readLog(again, 'log')), numbered(5));
    assert.deepEqual(await readLog(again, 'none'), []);
  });

  contract('trimming keeps all from the position on, where it was', async (fs, subject) => {
    const { log, positions } = await filledLog(fs, 'log', 40);
    const before = await readLog(fs, 'log');
    for (const cut of [0, 1, 17, 39]) {
      await log.trimBefore(positions[cut] as number);
      const rest = await readLog(fs, 'log', positions[cut] as number);
      assert.deepEqual(rest, before.slice(cut));
      const all = await readLog(fs, 'log');
      assert.deepEqual(all, before.slice(before.length - all.length), 'what is kept besides has no hole');
    }
    const last = await log.append([bytes('after')]);
    assert.ok(last > (positions[39] as number));
    const again = await subject.reopen();
    assert.deepEqual(texts(await readLog(again, 'log', positions[39] as number)), ['record 39', 'after']);
  });

  contract('a log that is trimmed while it is read is read on after what was removed', async (fs) => {
    const log = await fs.openLog('log');
    const append = (i: number): Promise<number> => log.append([pattern(700_000, i)]);
    const positions: number[] = [];
    for (let i = 0; i < 20; i++) positions.push(await append(i));
    const got: LogAppend[] = [];
    for await (const one of fs.readLog('log')) {
      got.push(one);
      // twice: what was removed the second time was not there yet when the reading began
      if (got.length === 1) await log.trimBefore(positions[11] as number);
      if (one.position === positions[12]) {
        for (let i = 20; i < 40; i++) positions.push(await append(i));
        await log.trimBefore(positions[31] as number);
      }
    }
    const places = got.map(({ position }) => positions.indexOf(position));
    for (const [i, { bytes: read, afterTrim }] of got.entries()) {
      const place = places[i] as number;
      const before = i === 0 ? -1 : (places[i - 1] as number);
      assert.ok(place > before, 'in order');
      assert.ok(read.equals(pattern(700_000, place)), `append ${place}`);
      assert.equal(afterTrim === true, place > before + 1, 'a hole is reported, and nothing else');
      if (place > before + 1)
        assert.ok(place <= (before < 12 ? 11 : 31), `appends ${before + 1} to ${place - 1} are left out`);
    }
    assert.ok((places.at(-1) as number) >= 19, 'all that was there when the reading began');
    const rest = await readLog(fs, 'log', positions[31] as number);
    assert.equal(rest.length, 9, 'nothing after the trim is gone');
  });

  contract('large logs trim and go on', async (fs, subject) => {
    const log = await fs.openLog('log');
    const positions: number[] = [];
    for (let i = 0; i < 12; i++) {
      positions.push(await log.append([pattern(700_000, i)]));
      if (i >= 3) await log.trimBefore(positions[i - 2] as number);
    }
    const check = async (from: FileSystem): Promise<void> => {
      const got = await readLog(from, 'log', positions[9]);
      assert.deepEqual(
        got.map(({ position }) => position),
        positions.slice(9),
      );
      got.forEach((append, i) => assert.ok(append.bytes.equals(pattern(700_000, 9 + i))));
    };
    await check(fs);
    await check(await subject.reopen());
  });

  contract('a log tells how many bytes it holds', async (fs) => {
    const log = await fs.openLog('log');
    await log.append([pattern(10_000, 1)]);
    assert.ok(log.sizeBytes() >= 10_000, `${log.sizeBytes()}`);
    await log.append([pattern(30_000, 1)]);
    assert.ok(log.sizeBytes() >= 40_000, `${log.sizeBytes()}`);
    await log.close();
  });

  contract('a log tells how many bytes its appends from one on have', async (fs) => {
    const log = await fs.openLog('log');
    const positions: number[] = [];
    for (let i = 0; i < 40; i++) positions.push(await log.append([pattern(1_000_000, i)]));
    for (const i of [0, 1, 20, 39]) {
      const bytes = log.sizeBytes(positions[i]);
      const least = (40 - i) * 1_000_000;
      // a directory counts whole segments of 16 MiB, and slots may have appends twice
      assert.ok(bytes >= least && bytes < 2 * least + 34_000_000, `${bytes} bytes of ${40 - i} appends`);
    }
    assert.ok(log.sizeBytes(positions[39]) < log.sizeBytes(positions[0]) - 5_000_000);
    await log.trimBefore(positions[5]!);
    await log.append([pattern(1_000_000, 40)]);
    assert.ok(log.sizeBytes(positions[20]) >= 21_000_000);
    await log.close();
  });

  contract('logs are listed by prefix, and files are not among them', async (fs) => {
    for (const path of ['s2/b', 's1/b', 's1/a', 's10/a']) await (await fs.openLog(path)).close();
    await writeFile(fs, 's1/file', 'x');
    assert.deepEqual(await fs.listLogs(''), ['s1/a', 's1/b', 's10/a', 's2/b']);
    assert.deepEqual(await fs.listLogs('s1/'), ['s1/a', 's1/b']);
    assert.deepEqual(await fs.listLogs('s1'), ['s1/a', 's1/b', 's10/a']);
    assert.deepEqual(await fs.listLogs('x'), []);
  });

  contract('a deleted log is gone whole, for good, and its path is free', async (fs, subject) => {
    const { log } = await filledLog(fs, 'logs/a', 5);
    await log.close();
    await (await filledLog(fs, 'logs/b', 3)).log.close();
    await fs.deleteLog('logs/a');
    await fs.deleteLog('logs/a');
    await fs.deleteLog('logs/none');
    assert.deepEqual(await readLog(fs, 'logs/a'), []);
    assert.deepEqual(await fs.listLogs(''), ['logs/b']);
    await fs.fence('logs/b');
    await fs.deleteLog('logs/b');
    assert.deepEqual(await fs.listLogs(''), []);
    const fresh = await fs.openLog('logs/a');
    await fresh.append([bytes('new')]);
    assert.deepEqual(texts(await readLog(fs, 'logs/a')), ['new']);
    const again = await subject.reopen();
    assert.deepEqual(await again.listLogs(''), ['logs/a']);
    assert.deepEqual(texts(await readLog(again, 'logs/a')), ['new']);
  });
}

function fullStorageRefuses(contract: Contract): void {
  contract(
    'what finds no room is refused, nothing of it is there, and all goes on when there is room again',
    async (fs, subject) => {
      const { log } = await filledLog(fs, 'log', 5);
      subject.setFreeBytes(0);
      await fails(log.append([pattern(3_000_000, 1)]), Code.RESOURCE_EXHAUSTED);
      await fails(log.reserve(3_000_000), Code.RESOURCE_EXHAUSTED);
      const space = await fs.space?.();
      assert.ok(space === undefined || (space.freeBytes === 0 && space.totalBytes >= 0), 'its space is what is free');
      await fails(writeFile(fs, 'file', pattern(3_000_000, 1)), Code.RESOURCE_EXHAUSTED);
      assert.deepEqual(texts(await readLog(fs, 'log')), numbered(5));
      subject.setFreeBytes(Number.POSITIVE_INFINITY);
      await log.append([bytes('record 5')]);
      await writeFile(fs, 'file', 'whole');
      assert.equal(await readText(fs, 'file'), 'whole');
      assert.deepEqual(texts(await readLog(await subject.reopen(), 'log')), numbered(6));
    },
  );

  contract('appends into reserved room are never refused, whatever else is', async (_, subject) => {
    const size = fc.oneof(fc.nat(200), fc.nat(9000), fc.nat(100_000));
    const step = fc.oneof(
      fc.record({ kind: fc.constantFrom('reserve', 'append', 'other'), bytes: size }),
      fc.record({ kind: fc.constant('append'), bytes: fc.nat(9000) }),
      fc.record({ kind: fc.constant('free'), bytes: fc.oneof(fc.constant(0), fc.nat(400_000)) }),
    );
    const written = new Map<string, Buffer[]>();
    let n = 0;
    let appends = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 40 }), async (steps) => {
        const { fileSystem } = subject;
        subject.setFreeBytes(Number.POSITIVE_INFINITY);
        const path = `reserved/${n++}`;
        const log = await fileSystem.openLog(path);
        const contents: Buffer[] = [];
        written.set(path, contents);
        let reserved = 0;
        for (const { kind, bytes: length } of steps) {
          const content = pattern(length, n + contents.length);
          if (kind === 'free') {
            subject.setFreeBytes(length);
          } else if (kind === 'reserve') {
            if (await unlessFull(log.reserve(length))) reserved += length;
          } else if (kind === 'other') {
            if (await unlessFull(log.append([content]))) contents.push(content);
          } else if (reserved >= APPEND_OVERHEAD_BYTES) {
            const part = content.subarray(0, reserved - APPEND_OVERHEAD_BYTES);
            await log.append([part], { reserved: true });
            reserved -= part.length + APPEND_OVERHEAD_BYTES;
            contents.push(part);
            appends++;
          }
        }
        // all that is left, in one
        if (reserved >= APPEND_OVERHEAD_BYTES) {
          contents.push(pattern(reserved - APPEND_OVERHEAD_BYTES, n));
          subject.setFreeBytes(0);
          await log.append([contents.at(-1) as Buffer], { reserved: true });
        }
        if (n % 2 === 0) await log.close();
        assert.deepEqual(
          (await readLog(fileSystem, path)).map((append) => append.bytes),
          contents,
        );
      }),
      { numRuns: 40 },
    );
    assert.ok(appends > 0, 'no append into reserved room');
    subject.setFreeBytes(Number.POSITIVE_INFINITY);
    const again = await subject.reopen();
    for (const [path, contents] of written)
      assert.deepEqual(
        (await readLog(again, path)).map((append) => append.bytes),
        contents,
      );
  });

  contract(
    'room is reserved while an append is in flight, and for more than a log takes in one piece',
    async (fs, subject) => {
      const log = await fs.openLog('log');
      const large = 20_000_000;
      const [, , first] = await Promise.all([
        log.reserve(large + 4 * (1000 + APPEND_OVERHEAD_BYTES)),
        log.reserve(APPEND_OVERHEAD_BYTES + 1000),
        log.append([bytes('first')]),
      ]);
      assert.ok(first >= 0);
      subject.setFreeBytes(0);
      for (let i = 0; i < 4; i++) await log.append([pattern(1000, i)], { reserved: true });
      await log.append([pattern(large, 5)], { reserved: true });
      assert.deepEqual(
        (await readLog(fs, 'log')).map((append) => append.bytes.length),
        [5, 1000, 1000, 1000, 1000, large],
      );
    },
  );
}

/** True if it was done; the storage may refuse it for lack of space. */
async function unlessFull(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    hasCode(error, Code.RESOURCE_EXHAUSTED);
    return false;
  }
}

function bytes(text: string): Buffer {
  return Buffer.from(text, 'utf8');
}

/** Bytes that repeat with no power of two, so that a misplaced block shows. */
function pattern(length: number, seed: number): Buffer {
  const out = Buffer.allocUnsafe(length);
  for (let i = 0; i < length; i++) out[i] = (i * 31 + (i >>> 8) * 7 + seed) & 0xff;
  return out;
}

async function writeFile(fs: FileSystem, path: string, content: string | Buffer): Promise<void> {
  const writer = await fs.create(path);
  await writer.append(Buffer.from(content));
  await writer.close();
}

async function readText(fs: FileSystem, path: string): Promise<string> {
  return (await fs.read(path, 0, await fs.size(path))).toString();
}

async function readLog(fs: FileSystem, path: string, from?: number): Promise<LogAppend[]> {
  const appends: LogAppend[] = [];
  for await (const append of fs.readLog(path, from))
    appends.push({ position: append.position, bytes: Buffer.from(append.bytes) });
  return appends;
}

function texts(appends: readonly LogAppend[]): string[] {
  return appends.map((append) => append.bytes.toString());
}

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `record ${i}`);
}

async function filledLog(
  fs: FileSystem,
  path: string,
  count: number,
): Promise<{ log: LogWriter; positions: number[] }> {
  const log = await fs.openLog(path);
  const positions: number[] = [];
  for (const text of numbered(count)) positions.push(await log.append([bytes(text)]));
  return { log, positions };
}

function assertAscending(positions: readonly number[]): void {
  for (let i = 1; i < positions.length; i++)
    assert.ok((positions[i] as number) > (positions[i - 1] as number), `position ${i}`);
}

async function failure(call: Promise<unknown>): Promise<BigtableError> {
  const outcome = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(outcome instanceof BigtableError, `expected a BigtableError, not ${outcome}`);
  return outcome;
}

async function fails(call: Promise<unknown>, code: Code): Promise<void> {
  hasCode(await failure(call), code);
}

function hasCode(error: unknown, code: Code): void {
  assert.ok(error instanceof BigtableError, `expected a BigtableError, not ${error}`);
  assert.equal(codeName(error.code), codeName(code), error.message);
}
