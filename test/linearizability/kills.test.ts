/**
 * Linearizability under kill -9, in a short form: a server and an embedded database are linearizable, and each planted
 * fault is found. The long form is `npm run linearizability`.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { userEnvironment } from '../cli/user-environment.ts';
import type { Program } from './database-process.ts';
import { FAULTS, type PlantedFault } from './faults.ts';
import { KillRun, type KillRunResult } from './kill-run.ts';

const here = fileURLToPath(import.meta.url);
const neighbour = (path: string): string => fileURLToPath(new URL(`${path}${extname(here)}`, import.meta.url));
const seed = (): number => 1 + Math.floor(Math.random() * 1e6);

function server(directory: string): Program {
  const words = ['bin/edubba', 'serve', '--dir', directory, '--address', '127.0.0.1:0'];
  return { kind: 'server', command: [process.execPath, ...words], env: userEnvironment() };
}

function embedded(directory: string, fault?: PlantedFault): Program {
  const plant = ['--import', pathToFileURL('test/linearizability/plant.mjs').href];
  return {
    kind: 'embedded',
    command: [
      process.execPath,
      ...process.execArgv,
      ...(fault ? plant : []),
      neighbour('./embedded-program'),
      directory,
    ],
    // without NODE_OPTIONS costly asserts are off: the fault is to be found from the outside
    env: { ...userEnvironment(), ...(fault && { NODE_OPTIONS: '', EDUBBA_PLANTED_FAULT: JSON.stringify(fault) }) },
  };
}

async function run(
  t: TestContext,
  programOn: (directory: string) => Program,
  operations: number,
): Promise<KillRunResult & { readonly seed: number }> {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-linearizability-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const options = { seed: seed(), clients: 8, rows: 8, operations, operationsPerKill: 200 };
  const result = await new KillRun({ ...options, directory, program: programOn(directory) }).run();
  return { ...result, seed: options.seed };
}

describe('rows are linearizable under kill -9', { concurrency: 2 }, () => {
  for (const programOn of [server, embedded]) {
    test(programOn.name, async (t) => {
      const result = await run(t, programOn, 600);
      assert.equal(result.failure, undefined, `seed ${result.seed}`);
      assert.deepEqual(result.unexpected, [], `seed ${result.seed}`);
      assert.ok(result.kills > 0 && result.unknown > 0, JSON.stringify(result));
    });
  }
});

describe('it is found that', { concurrency: 2 }, () => {
  for (const fault of FAULTS) {
    test(fault.title, async (t) => {
      const { failure, unexpected, ...counts } = await run(t, (directory) => embedded(directory, fault), 20_000);
      assert.match(failure ?? '', /not linearizable/, JSON.stringify({ unexpected, ...counts }));
    });
  }
});
