/**
 * Two processes start together for one directory, again and again: exactly one may have it each time. Starting a
 * process costs far more than the race, so each pair races many rounds over fresh directories, in step by files.
 *
 *   node --import tsx test/lock/race.ts [ROUNDS]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, extname, join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';

// compiled or not, as this file is
const RACER = join(dirname(fileURLToPath(import.meta.url)), `racer${extname(import.meta.url)}`);

export interface RaceResult {
  readonly rounds: number;
  /** Rounds that each of the two won. */
  readonly wins: readonly [number, number];
  /** Rounds without exactly one winner: must be 0. */
  readonly broken: number;
}

class Racer {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(root: string) {
    const loader = process.execArgv.filter((arg) => !arg.startsWith('--test'));
    this.#child = spawn(process.execPath, [...loader, RACER, root], { stdio: ['pipe', 'pipe', 'inherit'] });
    const lines: Interface = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream });
    this.#lines = lines[Symbol.asyncIterator]();
  }

  async line(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error('a racer ended early');
    return value;
  }

  say(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  async end(): Promise<void> {
    const exit = once(this.#child, 'exit');
    this.#child.stdin?.end();
    await exit;
  }
}

/** Every other round is over a directory that was locked before, so that the lock file is there already. */
export async function race(rounds: number): Promise<RaceResult> {
  const root = mkdtempSync(join(tmpdir(), 'edubba-race-'));
  const racers = [new Racer(root), new Racer(root)] as const;
  const wins: [number, number] = [0, 0];
  let broken = 0;
  try {
    for (let round = 0; round < rounds; round++) {
      const directory = `d${Math.floor(round / 2)}`;
      if (round % 2 === 0) mkdirSync(join(root, directory));
      for (const racer of racers) racer.say(`${round} ${directory}`);
      for (const racer of racers) if ((await racer.line()) !== 'ready') broken++;
      writeFileSync(join(root, `go${round}`), '');
      const outcomes = [await racers[0].line(), await racers[1].line()];
      const winners = outcomes.flatMap((outcome, i) => (outcome === 'held' ? [i] : []));
      if (winners.length === 1 && outcomes.filter((outcome) => outcome === 'refused').length === 1)
        wins[winners[0] as 0 | 1]++;
      else broken++;
      for (const racer of racers) racer.say('release');
      for (const racer of racers) if ((await racer.line()) !== 'released') broken++;
    }
  } finally {
    for (const racer of racers) await racer.end();
    rmSync(root, { recursive: true });
  }
  return { rounds, wins, broken };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const result = await race(Number(process.argv[2] ?? 1000));
  console.log(
    `${result.rounds} races of two: won ${result.wins[0]} and ${result.wins[1]}, ${result.broken} without exactly one winner`,
  );
  process.exitCode = result.broken === 0 ? 0 : 1;
}
