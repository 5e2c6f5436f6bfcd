import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { fileSystemContract } from '../../../test/contracts/file-system-contract.ts';
import { filesSentAgain } from '../../../test/contracts/lost-answers.ts';
import { BigtableError, Code, CorruptionError } from '../../base/index.ts';
import type { FileSystem } from '../seams/file-system.ts';
import { type FileOperation, MemoryFileSystem } from './memory-file-system.ts';
import { SeededRandom } from './seeded-random.ts';

fileSystemContract('memory', async () => {
  const fileSystem = new MemoryFileSystem();
  return {
    fileSystem,
    reopen: async () => fileSystem.crash('nothing'),
    setFreeBytes: (bytes) => (fileSystem.freeBytes = bytes),
  };
});

fileSystemContract('memory, every call applied and its answer lost', async () => {
  const fileSystem = new MemoryFileSystem();
  return {
    fileSystem: filesSentAgain(fileSystem),
    reopen: async () => filesSentAgain(fileSystem.crash('nothing')),
    setFreeBytes: (bytes) => (fileSystem.freeBytes = bytes),
  };
});

fileSystemContract('memory, every operation delayed', async () => {
  const random = new SeededRandom(7);
  const faults = async (): Promise<void> => {
    for (let turns = Math.floor(random.float() * 4); turns > 0; turns--) await undefined;
  };
  const fileSystem = new MemoryFileSystem({ faults });
  return {
    fileSystem,
    reopen: async () => fileSystem.crash('nothing'),
    setFreeBytes: (bytes) => (fileSystem.freeBytes = bytes),
  };
});

/** Holds back the named operations until they are released. */
class Gate {
  readonly #held: FileOperation;
  #open: () => void = () => {};
  readonly #opened = new Promise<void>((resolve) => {
    this.#open = resolve;
  });

  constructor(held: FileOperation) {
    this.#held = held;
  }

  readonly faults = (operation: FileOperation): void | Promise<void> => {
    if (operation === this.#held) return this.#opened;
  };

  open(): void {
    this.#open();
  }
}

describe('MemoryFileSystem crashes', () => {
  test('an append in flight leaves nothing, a torn part or all, and the log ends cleanly', async () => {
    for (const [choice, expected] of [
      ['nothing', ['kept']],
      ['torn', ['kept']],
      ['all', ['kept', 'in flight']],
    ] as const) {
      const gate = new Gate('syncLog');
      let holding = false;
      const fs = new MemoryFileSystem({ faults: (operation) => (holding ? gate.faults(operation) : undefined) });
      const log = await fs.openLog('log');
      await log.append([Buffer.from('kept')]);
      holding = true;
      const inFlight = log.append([Buffer.from('in '), Buffer.from('flight')]);
      await turns();
      const next = fs.crash(choice, () => {});
      gate.open();
      await fails(inFlight, Code.UNAVAILABLE);
      assert.deepEqual(await logTexts(next), expected);
      assert.deepEqual(fs.counts, { written: 2, synced: 1 });
    }
  });

  test('a file whose sync is in flight is there whole or not at all', async () => {
    for (const [choice, expected] of [
      ['nothing', []],
      ['torn', []],
      ['all', ['f']],
    ] as const) {
      const gate = new Gate('syncFile');
      const fs = new MemoryFileSystem({ faults: gate.faults });
      const writer = await fs.create('f');
      await writer.append(Buffer.from('content'));
      const closing = writer.close();
      await turns();
      assert.deepEqual(await fs.list(''), []);
      const next = fs.crash(choice);
      gate.open();
      await fails(closing, Code.UNAVAILABLE);
      assert.deepEqual(
        (await next.list('')).map(({ path }) => path),
        expected,
      );
      if (expected.length > 0) assert.equal((await next.read('f', 0, 7)).toString(), 'content');
    }
  });

  test('every call fails after a crash, and nothing of it reaches the next file system', async () => {
    const fs = new MemoryFileSystem();
    const log = await fs.openLog('log');
    const writer = await fs.create('f');
    const next = fs.crash();
    const calls: (() => Promise<unknown>)[] = [
      () => fs.create('g'),
      () => fs.size('f'),
      () => fs.read('f', 0, 0),
      () => fs.list(''),
      () => fs.delete('f'),
      () => fs.openLog('other'),
      () => fs.fence('log'),
      () => logTexts(fs),
      () => fs.listLogs(''),
      () => fs.deleteLog('log'),
      () => writer.append(Buffer.from('x')),
      () => writer.close(),
      () => log.append([Buffer.from('x')]),
      () => log.trimBefore(0),
    ];
    for (const call of calls) await fails(call(), Code.UNAVAILABLE);
    assert.deepEqual(await next.list(''), []);
    assert.deepEqual(await next.listLogs(''), ['log']);
    assert.deepEqual(await logTexts(next), []);
  });

  test('whatever the crash, acknowledged appends are a prefix of what is found', async () => {
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.nat(20), async (seed, crashAfter) => {
        const random = new SeededRandom(seed);
        const faults = async (): Promise<void> => {
          for (let left = Math.floor(random.float() * 3); left > 0; left--) await undefined;
        };
        const fs = new MemoryFileSystem({ faults });
        const acknowledged: string[] = [];
        const writing = (async () => {
          const log = await fs.openLog('log');
          for (let i = 0; ; i++) {
            await log.append([Buffer.from(`record ${i}`)]);
            acknowledged.push(`record ${i}`);
          }
        })();
        writing.catch(() => {});
        for (let i = 0; i < crashAfter; i++) await undefined;
        const next = fs.crash(random, () => {});
        const found = await logTexts(next);
        await fails(writing, Code.UNAVAILABLE);
        assert.deepEqual(found.slice(0, acknowledged.length), acknowledged);
        assert.ok(found.length <= acknowledged.length + 1, 'at most the append in flight is found as well');
        seen.add(`${found.length - acknowledged.length}`);
      }),
      { numRuns: 200, seed: 1 },
    );
    assert.deepEqual([...seen].sort(), ['0', '1'], 'both outcomes were met');
  });
});

describe('MemoryFileSystem faults', () => {
  test('no append and no close is acknowledged before its sync', async () => {
    const gate = new Gate('syncLog');
    const fs = new MemoryFileSystem({ faults: gate.faults });
    const log = await fs.openLog('log');
    let acknowledged = false;
    const append = log.append([Buffer.from('x')]).then(() => {
      acknowledged = true;
    });
    await turns();
    assert.equal(acknowledged, false);
    assert.deepEqual(fs.counts, { written: 1, synced: 0 });
    gate.open();
    await append;
    assert.deepEqual(fs.counts, { written: 1, synced: 1 });
    await writeFile(fs, 'f', 'x');
    assert.deepEqual(fs.counts, { written: 2, synced: 2 });
  });

  test('a failed sync leaves the outcome unknown and ends the log', async () => {
    const fs = failing('syncLog', new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full'));
    const log = await fs.openLog('log');
    await fails(log.append([Buffer.from('x')]), Code.UNAVAILABLE);
    await fails(log.append([Buffer.from('y')]), Code.FAILED_PRECONDITION);
    assert.deepEqual(fs.counts, { written: 1, synced: 0 });
    assert.deepEqual(await logTexts(fs.crash('nothing', () => {})), []);
  });

  test('a full disk refuses an append and the log can be used further', async () => {
    let full = true;
    const fs = new MemoryFileSystem({
      faults: (operation) => {
        if (full && operation === 'appendLog') throw new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full');
      },
    });
    const log = await fs.openLog('log');
    await fails(log.append([Buffer.from('x')]), Code.RESOURCE_EXHAUSTED);
    full = false;
    await log.append([Buffer.from('y')]);
    assert.deepEqual(await logTexts(fs), ['y']);
  });

  test('a failed close leaves no file, and an error that is not a BigtableError becomes one', async () => {
    const fs = failing('syncFile', new TypeError('broken disk'));
    await fails(writeFile(fs, 'f', 'x'), Code.INTERNAL);
    assert.deepEqual(await fs.list(''), []);
    assert.deepEqual(fs.counts, { written: 1, synced: 0 });
  });

  test('the faults are called for every operation with its path', async () => {
    const calls: string[] = [];
    const fs = new MemoryFileSystem({ faults: (operation, path) => void calls.push(`${operation} ${path}`) });
    await writeFile(fs, 'f', 'x');
    await fs.size('f');
    await fs.read('f', 0, 1);
    await fs.list('p');
    await fs.delete('f');
    const log = await fs.openLog('log');
    await log.append([Buffer.from('x')]);
    await log.trimBefore(0);
    await fs.fence('log');
    await logTexts(fs);
    await fs.listLogs('q');
    await fs.deleteLog('log');
    assert.deepEqual(calls, [
      'create f',
      'appendFile f',
      'closeFile f',
      'syncFile f',
      'size f',
      'read f',
      'list p',
      'delete f',
      'openLog log',
      'appendLog log',
      'syncLog log',
      'trimLog log',
      'fence log',
      'readLog log',
      'listLogs q',
      'deleteLog log',
    ]);
  });
});

describe('MemoryFileSystem logs', () => {
  test('an append in flight when the fence comes is before the fence: it outlives a crash', async () => {
    const gate = new Gate('syncLog');
    const fs = new MemoryFileSystem({ faults: gate.faults });
    const log = await fs.openLog('log');
    const inFlight = log.append([Buffer.from('x')]);
    await turns();
    await fs.fence('log');
    gate.open();
    await inFlight;
    assert.deepEqual(await logTexts(fs.crash('nothing')), ['x']);
  });

  test('an append that comes to a fenced log leaves nothing', async () => {
    const gate = new Gate('appendLog');
    const fs = new MemoryFileSystem({ faults: gate.faults });
    const log = await fs.openLog('log');
    const late = log.append([Buffer.from('x')]);
    await fs.fence('log');
    gate.open();
    await fails(late, Code.FAILED_PRECONDITION);
    assert.deepEqual(await logTexts(fs), []);
  });

  test('the fence of a missing log takes its name', async () => {
    const fs = new MemoryFileSystem();
    await fs.fence('log');
    await fails(fs.openLog('log'), Code.ALREADY_EXISTS);
    await fs.deleteLog('log');
    await (await fs.openLog('log')).close();
  });

  test('an append to a deleted log is not acknowledged', async () => {
    const gate = new Gate('syncLog');
    const fs = new MemoryFileSystem({ faults: gate.faults });
    const log = await fs.openLog('log');
    const inFlight = log.append([Buffer.from('x')]);
    await turns();
    await fs.deleteLog('log');
    gate.open();
    await fails(inFlight, Code.UNAVAILABLE);
    await fails(log.append([Buffer.from('y')]), Code.FAILED_PRECONDITION);
    assert.deepEqual(await fs.listLogs(''), []);
  });

  test('two concurrent appends are a bug of the caller', async () => {
    const log = await new MemoryFileSystem().openLog('log');
    const first = log.append([Buffer.from('x')]);
    await fails(log.append([Buffer.from('y')]), Code.INTERNAL);
    await first;
  });

  test('a damaged append is corruption, the last one a torn tail', async () => {
    const fs = new MemoryFileSystem();
    const log = await fs.openLog('log');
    const positions = [
      await log.append([Buffer.from('a')]),
      await log.append([Buffer.from('b')]),
      await log.append([Buffer.from('c')]),
    ];
    fs.damage('log', positions[2]!);
    assert.deepEqual(await logTexts(fs), ['a', 'b']);
    fs.damage('log', positions[1]!);
    await assert.rejects(
      logTexts(fs),
      (error) => error instanceof CorruptionError && error.file === 'log' && error.offset === positions[1],
    );
  });

  test('a damaged file differs in one byte', async () => {
    const fs = new MemoryFileSystem();
    await writeFile(fs, 'f', 'abc');
    fs.damage('f', 1);
    assert.deepEqual([...(await fs.read('f', 0, 3))], [0x61, 0x62 ^ 0xff, 0x63]);
  });
});

function failing(failed: FileOperation, error: Error): MemoryFileSystem {
  return new MemoryFileSystem({
    faults: (operation) => {
      if (operation === failed) throw error;
    },
  });
}

async function writeFile(fs: FileSystem, path: string, text: string): Promise<void> {
  const writer = await fs.create(path);
  await writer.append(Buffer.from(text));
  await writer.close();
}

async function logTexts(fs: FileSystem): Promise<string[]> {
  const texts: string[] = [];
  for await (const append of fs.readLog('log')) texts.push(append.bytes.toString());
  return texts;
}

/** Resolves when all work that waits only for promises has run. */
async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await undefined;
}

async function fails(call: Promise<unknown>, code: Code): Promise<void> {
  await assert.rejects(call, (error) => error instanceof BigtableError && error.code === code);
}
