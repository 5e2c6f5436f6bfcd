/**
 * Edubba embedded, compared with the stores that a Node user would embed instead: classic-level, rocksdb-native, lmdb,
 * better-sqlite3. The same machine, the same run, the same durability; each measurement in a process of its own,
 * systems in turn; all threads counted.
 *
 *   npm run bench -- engine [--rows N] [--only LINE,...] [--systems NAME,...] [--shape value|cells|both]
 *                           [--rounds N] [--json FILE]
 *
 * Writes are measured from the first until compactions are at rest. Reading lines open a directory that a load has
 * filled in random order. `--only` also takes the lines about Edubba alone: memory, reopen, write-amplification,
 * compaction-latency. With several rounds the best of each system counts. What is measured stands in engine/lines.ts
 * and engine/parts.ts; how each peer is driven, in engine/peer-stores.ts.
 */
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Job, type Outcome, type Shape, type SystemName, userBytes } from './engine/job.ts';
import { LINES } from './engine/lines.ts';
import { type Figures, PARTS } from './engine/parts.ts';
import { installPeers } from './engine/peers.ts';
import { printResults, printTargets, type Result } from './engine/report.ts';

/** Measured next to the others in lines that read more than the caches hold. */
const TUNED: SystemName = 'edubba-8k';
const ALL_SYSTEMS: readonly SystemName[] = ['edubba', 'classic-level', 'rocksdb-native', 'lmdb', 'better-sqlite3'];
const CHILD = fileURLToPath(new URL('./engine/child.js', import.meta.url));

function option(name: string, fallback: string): string {
  const words = process.argv.slice(2);
  const at = words.indexOf(`--${name}`);
  return at < 0
    ? (words.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3) ?? fallback)
    : (words[at + 1] ?? fallback);
}

function chosen<T extends string>(name: string, all: readonly T[], fallback: readonly T[]): readonly T[] {
  const words = option(name, fallback.join(',')).split(',') as T[];
  for (const word of words)
    if (!all.includes(word)) throw new Error(`--${name}: there is no "${word}"; there are ${all.join(', ')}`);
  return words;
}

function inChild<T>(job: Job): Promise<T> {
  return new Promise((resolve, reject) => {
    const execArgv = option('node-options', '').split(' ').filter(Boolean);
    const child = fork(CHILD, [JSON.stringify(job)], {
      execArgv: ['--enable-source-maps', ...execArgv],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    let answer: T | undefined;
    child.on('message', (message) => (answer = message as T));
    child.on('exit', (code) =>
      answer === undefined
        ? reject(new Error(`${job.system} ended with status ${code} in ${job.line}`))
        : resolve(answer),
    );
  });
}

const rows = Number(option('rows', '1000000'));
const rounds = Number(option('rounds', '1'));
const lines = chosen(
  'only',
  [...Object.keys(LINES), ...Object.keys(PARTS)],
  [...Object.keys(LINES), ...Object.keys(PARTS)],
);
const shapes: readonly Shape[] =
  option('shape', 'both') === 'both' ? ['value', 'cells'] : chosen<Shape>('shape', ['value', 'cells'], ['value']);
const systems = installPeers(chosen('systems', ALL_SYSTEMS, ALL_SYSTEMS));
const scratch = mkdtempSync(join(option('dir', tmpdir()), 'edubba-engine-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));

const best = (a: Outcome | undefined, b: Outcome): Outcome =>
  a !== undefined && a.operations / a.seconds > b.operations / b.seconds ? a : b;
const results: Result[] = [];
const figures: Record<string, Figures> = {};

function systemsOf(line: string): readonly SystemName[] {
  const { larger = false } = (LINES[line] ?? {}) as { readonly larger?: boolean };
  return larger && systems.includes('edubba') ? [...systems, TUNED] : systems;
}

/** A line for every system, in turn, from another one each round. */
async function measureLine(line: string, shape: Shape): Promise<void> {
  const reads = LINES[line]?.kind === 'read';
  const all = systemsOf(line);
  const found = new Map<SystemName, Outcome>();
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? all : [...all].reverse();
    for (const system of order) {
      const large = LINES[line]?.kind === 'read' && (LINES[line] as { larger?: boolean }).larger;
      const data = userBytes({ rows, shape });
      const directory = join(scratch, reads ? `loaded-${system}-${shape}` : 'written');
      const cacheBytes = reads ? Math.ceil(large ? data / 8 : data * 2) : 64 * 1024 * 1024;
      const outcome = await inChild<Outcome>({ system, line, shape, rows, directory, cacheBytes });
      if (!reads) rmSync(directory, { recursive: true, force: true });
      found.set(system, best(found.get(system), outcome));
    }
  }
  const here = all.flatMap((system) =>
    found.has(system) ? [{ line, shape, system, ...(found.get(system) as Outcome) }] : [],
  );
  results.push(...here);
  printResults(here);
}

for (const shape of shapes) {
  if (lines.some((line) => LINES[line]?.kind === 'read')) {
    for (const system of new Set(lines.flatMap(systemsOf))) {
      await inChild({
        system,
        line: 'load',
        shape,
        rows,
        directory: join(scratch, `loaded-${system}-${shape}`),
        cacheBytes: 64 * 1024 * 1024,
      });
    }
  }
  for (const line of lines) if (LINES[line]) await measureLine(line, shape);
}
printTargets(results);
for (const line of lines) {
  const part = PARTS[line];
  if (!part) continue;
  const found = await inChild<Figures>({
    system: 'edubba',
    line,
    shape: 'value',
    rows,
    directory: join(scratch, 'part'),
    cacheBytes: 0,
  });
  figures[line] = found;
  const first = Object.values(found)[0] ?? Number.NaN;
  console.log(
    `\n${line}: ${part.what}, ${rows} rows; ${part.target.name}: ${first <= part.target.most ? 'met' : 'NOT MET'}`,
  );
  console.table(found);
}
const file = option('json', '');
if (file !== '') writeFileSync(file, `${JSON.stringify({ rows, results, figures }, undefined, 2)}\n`);
