/**
 * kill -9 in the midst of writing, again and again on one directory: nothing acknowledged is lost, nothing deleted comes back,
 * every row is whole. EDUBBA_CRASH_ROUNDS=N makes it longer.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { open } from '../../src/embedded/index.ts';
import { acknowledged, checkLedger, WRITERS } from './ledger.ts';

const ROUNDS = Number(process.env['EDUBBA_CRASH_ROUNDS'] ?? 5);
const MOST_ITERATIONS = 600;
const writerPath = fileURLToPath(import.meta.url).replace('crash.test', 'writer');

/** Starts the writer and kills it after `iterations` acknowledged ones; gives all that it printed. */
async function writeAndKill(directory: string, iterations: number): Promise<string> {
  const child = spawn(process.execPath, [...process.execArgv, writerPath, directory], { stdio: ['ignore', 'pipe', 'pipe'] });
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

test(`kill -9 while writing, ${ROUNDS} times`, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-crash-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  let last = new Array<number>(WRITERS).fill(0);
  for (let round = 1; round <= ROUNDS; round++) {
    const iterations = 1 + Math.floor(Math.random() * MOST_ITERATIONS);
    const seen = acknowledged(await writeAndKill(directory, iterations));
    last = last.map((iteration, writer) => Math.max(iteration, seen[writer] as number));
    const database = await open(directory);
    try {
      last = await checkLedger(database, last);
    } catch (error) {
      throw new Error(`round ${round}, killed after ${iterations} iterations`, { cause: error });
    } finally {
      await database.close();
    }
  }
  const sum = last.reduce((a, b) => a + b, 0);
  assert.ok(sum > 0);
  console.log(`crash: ${ROUNDS} kills, ${sum} acknowledged iterations of 3 to 4 writes, none lost`);
});
