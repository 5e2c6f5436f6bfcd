/**
 * npm run hostile -- [--requests N] [--seed S]: hostile requests for each of the 84 calls, made from the API's
 * descriptors, to a server in a process of its own: each field of a good request damaged in every way, then random
 * ones. Default: 100,000 requests, from seed 1. Closes with one line 'N passed, N failed, N skipped', of requests.
 *
 * A request fails when its status is none that the API documents, or when it is accepted though it must not be. The run
 * fails as a whole when the server ends, reports a fault, or takes more memory than MAX_GROWTH_MIB beyond that at the
 * start.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildOrExit } from './lib/build.mjs';
import { argumentsOf, helpIfAsked } from './lib/command-line.mjs';
import { closingLine, secondsSince } from './lib/repository.mjs';
import { startEdubba } from './lib/server.mjs';

helpIfAsked(import.meta.url);

/** Caches and pools grow to their sizes; what the requests leave behind would grow with their number. */
const MAX_GROWTH_MIB = 512;
const CALL_MS = 30_000;
const MAX_WRONG = 20;
const PROGRESS_MS = 60_000;

const { values } = argumentsOf({ options: { requests: { type: 'string' }, seed: { type: 'string' } } });
const count = Number(values.requests ?? 100_000);
const seed = Number(values.seed ?? 1);
if (!(count > 0 && Number.isSafeInteger(seed))) {
  console.log('--requests and --seed take numbers');
  process.exit(2);
}

buildOrExit();
const { ByteBudget, requestContext } = await import('../dist/src/env/index.js');
const { apiClientOf } = await import('../dist/src/grpc/server/fixtures.js');
const { attack } = await import('../dist/src/grpc/server/hostile-run/fixtures.js');
const { wireClientOf } = await import('../dist/test/behaviour/doors.js');

const scratch = mkdtempSync(join(tmpdir(), 'edubba-hostile-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
const server = await startEdubba(join(scratch, 'data'));
const budget = new ByteBudget(2 ** 30);
const door = {
  address: server.address,
  get context() {
    return requestContext({ budget, deadlineMs: Date.now() + CALL_MS });
  },
};
const target = { wire: wireClientOf(door), api: apiClientOf(door), context: () => door.context };

/** The server's memory in MiB; undefined where the system does not tell it. */
function memoryMib() {
  try {
    const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))?.[1];
    return kib === undefined ? undefined : Math.round(Number(kib) / 1024);
  } catch {
    return undefined;
  }
}

const start = performance.now();
const memory = { start: memoryMib(), most: 0 };
let progressAt = start + PROGRESS_MS;
const found = await attack(target, {
  count,
  seed,
  allValues: true,
  onRound: ({ sent, wrong }) => {
    memory.most = Math.max(memory.most, memoryMib() ?? 0);
    if (performance.now() > progressAt) {
      console.log(`${secondsSince(start)}: ${sent} requests, ${wrong.length} failed, ${memoryMib()} MiB`);
      progressAt += PROGRESS_MS;
    }
    return wrong.length < MAX_WRONG;
  },
});
const end = memoryMib();
target.wire.close();
target.api.close();
const ended = await server.kill();

const faults = [...found.wrong];
const growth = (end ?? 0) - (memory.start ?? 0);
if (growth > MAX_GROWTH_MIB) faults.push(`the server's memory grew by ${growth} MiB`);
if (ended.code !== 0)
  faults.push(`the server ended with ${ended.signal ?? ended.code}: ${server.output().slice(-2000)}`);
const reported = server
  .output()
  .split('\n')
  .filter((line) => /\b(error|fatal)\b/i.test(line));
if (reported.length > 0) faults.push(`the server reported: ${reported.slice(-5).join('\n')}`);
for (const line of faults) console.log(`FAIL ${line}`);
const codes = [...found.codes].sort(([, a], [, b]) => b - a).map(([name, times]) => `${name} ${times}`);
console.log(`${found.sent} requests in ${secondsSince(start)}, seed ${seed}: ${codes.join(', ')}`);
console.log(
  `${found.calls.size} calls answered OK; the slowest answer: ${Math.round(found.slowestMs)} ms, ${found.slowest}`,
);
console.log(`memory of the server: ${memory.start} MiB at the start, ${memory.most} at most, ${end} at the end`);
console.log(closingLine({ passed: found.sent - found.wrong.length, failed: faults.length, skipped: 0 }));
process.exit(faults.length > 0 ? 1 : 0);
