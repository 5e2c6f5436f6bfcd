/**
 * kill -9 in the midst of writing, and of compactions of every kind, again and again on one directory: nothing
 * acknowledged is lost, nothing deleted comes back, every row is whole, no file is damaged, and one sweep leaves
 * nothing behind. EDUBBA_CRASH_ROUNDS=N makes it longer; .ci/run kills 5 times.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { checkDirectory, openDatabase } from '../../src/boot/index.ts';
import { overService } from '../../src/embedded/index.ts';
import { acknowledged, checkLedger, WRITERS } from './ledger.ts';
import { assertWhole } from './whole.ts';

const ROUNDS = Number(process.env['EDUBBA_CRASH_ROUNDS'] ?? 2);
const MAX_ITERATIONS = 600;
const pathOf = (writer: string): string => fileURLToPath(import.meta.url).replace('crash.test', writer);

/** Starts the writer and kills it after `iterations` acknowledged ones; returns all that it printed. */
async function writeAndKill(
  writer: string,
  directory: string,
  iterations: number,
  tabletServers: number,
): Promise<string> {
  const child = spawn(process.execPath, [...process.execArgv, pathOf(writer), directory, String(tabletServers)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  let lines = 0;
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    lines += text.split('\n').length - 1;
    if (lines >= iterations) child.kill('SIGKILL');
  });
  const [code, signal] = await once(child, 'close');
  assert.equal(signal, 'SIGKILL', `the writer ended by itself with ${code}: ${errors}`);
  return output;
}

/** Checks the directory before it is opened, the open database, and the directory after a sweep. */
async function look(directory: string, last: readonly number[]): Promise<number[]> {
  assert.deepEqual((await checkDirectory(directory)).findings, [], 'before it is opened');
  const opened = await openDatabase({ directory });
  const database = overService(opened.service, opened.env, opened.close);
  try {
    const now = await checkLedger(database, last);
    await opened.flush();
    // none is due then that could end, and leave its inputs behind, after the sweep
    await opened.compact();
    await opened.sweep();
    await assertWhole(opened, 'after one sweep');
    return now;
  } finally {
    await database.close();
  }
}

// what a process of two threads leaves behind is looked through by one of one
for (const [what, writer, tabletServers] of [
  ['writing', 'writer', 1],
  ['writing on two threads', 'writer', 2],
  ['compacting', 'compacting-writer', 1],
] as const) {
  test(`kill -9 while ${what}, ${ROUNDS} times`, { timeout: 3_600_000 }, async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'edubba-crash-'));
    t.after(() => rm(directory, { recursive: true, force: true }));
    let last = new Array<number>(WRITERS).fill(0);
    for (let round = 1; round <= ROUNDS; round++) {
      const iterations = 1 + Math.floor(Math.random() * MAX_ITERATIONS);
      const seen = acknowledged(await writeAndKill(writer, directory, iterations, tabletServers));
      last = last.map((iteration, at) => Math.max(iteration, seen[at] as number));
      try {
        last = await look(directory, last);
      } catch (error) {
        throw new Error(
          `round ${round}, killed after ${iterations} iterations: ${error instanceof Error ? error.stack : String(error)}`,
          { cause: error },
        );
      }
    }
    const sum = last.reduce((a, b) => a + b, 0);
    assert.ok(sum > 0);
    console.log(`crash: ${ROUNDS} kills while ${what}, ${sum} acknowledged iterations of 3 to 4 writes, none lost`);
  });
}
