/**
 * The directory lock among real processes: it must die with its owner and not before, and nothing that is written down
 * about an owner may matter. docs/decisions/0003-directory-lock.md
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, extname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { BigtableError, Code } from '../../src/base/index.ts';
import { lockDirectory } from '../../src/platform/index.ts';
import { race } from './race.ts';

// compiled or not, as this file is
const HOLDER = join(dirname(fileURLToPath(import.meta.url)), `holder${extname(import.meta.url)}`);
/** Runs the module named by workerData; in a thread TypeScript needs its loader to be registered anew. */
const IN_THREAD = `(async () => {
  const { workerData } = require('node:worker_threads');
  if (workerData.endsWith('.ts')) (await import('tsx/esm/api')).register();
  await import(workerData);
})()`;

const ROUNDS = Number(process.env['EDUBBA_LOCK_ROUNDS'] ?? 50);

describe('one owner a directory', () => {
  test(`of two that start together exactly one has it (${ROUNDS} rounds)`, async (t) => {
    const result = await race(ROUNDS);
    t.diagnostic(
      `${result.rounds} races: won ${result.wins.join(' and ')}, ${result.broken} without exactly one winner`,
    );
    assert.equal(result.broken, 0);
    assert.equal(result.wins[0] + result.wins[1], ROUNDS);
  });

  test('a second open in the same process is refused, until the first lets go', async (t) => {
    const directory = temporaryDirectory(t);
    const lock = await lockDirectory(directory);
    await refused(lockDirectory(directory), 'is open in this very process, since 2');
    await lock.release();
    await lock.release();
    const again = await lockDirectory(directory);
    await refused(lockDirectory(directory), 'is open in this very process, since 2');
    await again.release();
  });

  test('a lock that the program has forgotten holds until its process ends', async (t) => {
    const directory = temporaryDirectory(t);
    await lockDirectory(directory);
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    for (let i = 0; i < 5; i++) {
      collectGarbage();
      await new Promise((resolve) => setImmediate(resolve));
      await refused(lockDirectory(directory), 'is open in this very process, since 2');
    }
  });

  test('another thread is refused', async (t) => {
    const directory = temporaryDirectory(t);
    const lock = await lockDirectory(directory);
    const worker = new Worker(IN_THREAD, {
      eval: true,
      workerData: HOLDER,
      argv: [directory],
      stdin: true,
      stdout: true,
    });
    const said = await firstLine(worker.stdout);
    await worker.terminate();
    assert.match(said, /^refused: .* is in use by another Edubba/);
    await lock.release();
  });

  test('another process is refused, and told who holds it', async (t) => {
    const directory = temporaryDirectory(t);
    const { child, line } = await holder(t, directory);
    assert.equal(line, 'held');
    const error = await refused(lockDirectory(directory), `pid ${child.pid} on host`);
    assert.match(error.message, /Deleting LOCK frees nothing/);
    assert.match(
      (await holder(t, directory)).line,
      /^refused: .* is in use by another Edubba, which calls itself: pid \d+ on host .*, since \d{4}-/,
    );
  });
});

describe('the lock dies with its process, and only then', () => {
  test('kill -9 frees it at once', async (t) => {
    const directory = temporaryDirectory(t);
    for (let round = 0; round < 3; round++) {
      const { child, line } = await holder(t, directory);
      assert.equal(line, 'held');
      await kill(child);
      const lock = await lockDirectory(directory);
      await lock.release();
    }
    assert.ok(existsSync(join(directory, 'LOCK')), 'the file stays: no process removes it');
  });

  test('a stopped process keeps it', async (t) => {
    const directory = temporaryDirectory(t);
    const { child } = await holder(t, directory);
    child.kill('SIGSTOP');
    await stopped(child);
    await refused(lockDirectory(directory), `pid ${child.pid}`);
    child.kill('SIGCONT');
    await refused(lockDirectory(directory), `pid ${child.pid}`);
    child.kill('SIGSTOP');
    await kill(child);
    await (await lockDirectory(directory)).release();
  });

  test('a child of the owner does not keep it', async (t) => {
    const directory = temporaryDirectory(t);
    const lock = await lockDirectory(directory);
    const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'ignore', 'ignore'] });
    t.after(() => kill(child));
    await once(child, 'spawn');
    await lock.release();
    await (await lockDirectory(directory)).release();
  });
});

describe('what is written down decides nothing', () => {
  test('a lock file of a process that lives, or that has died, or of nonsense, holds nothing', async (t) => {
    const directory = temporaryDirectory(t);
    const living = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'ignore', 'ignore'] });
    t.after(() => kill(living));
    // as after a crash, when another process has been given the same pid
    for (const note of [
      `pid ${living.pid} on host here, since 2020-01-01`,
      'pid 1 on host x',
      'pid 999999999',
      '\0\xff'.repeat(5000),
      '',
    ]) {
      writeFileSync(join(directory, 'LOCK'), note);
      const lock = await lockDirectory(directory);
      assert.match(readFileSync(join(directory, 'LOCK'), 'utf8'), new RegExp(`^pid ${process.pid} on host .*\n$`));
      await lock.release();
    }
  });

  test('a lock file that tells a dead process, or nothing, is respected while it is locked', async (t) => {
    const directory = temporaryDirectory(t);
    await holder(t, directory);
    const notes = [
      ['pid 999999999 on host gone', 'pid 999999999 on host'],
      ['', 'has not written its note yet'],
      ['\x1b[2J\x07bell', '?[2J?bell'],
    ] as const;
    for (const [note, shown] of notes) {
      writeFileSync(join(directory, 'LOCK'), note);
      await refused(lockDirectory(directory), shown);
    }
  });
});

describe('across containers', () => {
  test('two pid namespaces that share the directory have one owner', async (t) => {
    if (!canUnshare()) return t.skip('new pid namespaces need root and util-linux (unshare)');
    const directory = temporaryDirectory(t);
    const first = await holder(t, directory, ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc']);
    assert.equal(first.line, 'held');
    const note = readFileSync(join(directory, 'LOCK'), 'utf8');
    const second = await holder(t, directory, ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc']);
    assert.match(second.line, /^refused: .* is in use by another Edubba/);
    // both are called pid 1 in their own world: a comparison of pids would have taken the other for itself
    assert.match(note, /^pid 1 on host/);
    await refused(lockDirectory(directory), 'pid 1 on host');
    await kill(first.child);
    await eventually(async () => await (await lockDirectory(directory)).release());
  });
});

function temporaryDirectory(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'edubba-lock-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A process that has tried to take the lock, and what it said. */
async function holder(
  t: TestContext,
  directory: string,
  wrapper: readonly string[] = [],
): Promise<{ child: ChildProcess; line: string }> {
  const [command = '', ...args] = [
    ...wrapper,
    process.execPath,
    ...process.execArgv.filter((arg) => !arg.startsWith('--test')),
    HOLDER,
    directory,
  ];
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => kill(child));
  return { child, line: await firstLine(child.stdout as NodeJS.ReadableStream) };
}

async function firstLine(output: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface({ input: output })) return line;
  throw new Error('the holder ended without a word');
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

async function refused(attempt: Promise<unknown>, naming: string): Promise<BigtableError> {
  const error = await attempt.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof BigtableError, `expected a refusal, not ${error}`);
  assert.equal(error.code, Code.FAILED_PRECONDITION);
  assert.ok(error.message.includes(naming), error.message);
  return error;
}

/** Waits until the kernel shows the process as stopped. */
async function stopped(child: ChildProcess): Promise<void> {
  const path = `/proc/${child.pid}/stat`;
  if (!existsSync(path)) return;
  await eventually(async () => assert.match(readFileSync(path, 'utf8'), /\) T /));
}

/** Tries again until it holds; the runner's own time limit ends what never does. */
async function eventually(check: () => Promise<void>): Promise<void> {
  for (let i = 0; ; i++) {
    try {
      return await check();
    } catch (error) {
      if (i > 2000) throw error;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

function canUnshare(): boolean {
  try {
    execFileSync('unshare', ['--pid', '--fork', '--mount-proc', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
