/**
 * Where a soak runs: in memory and in simulated time, where one seed makes one run, compactions run in line and the
 * power may fail; or in a directory, with the machine's time, real threads and a clock that can be set forward.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import assert from 'node:assert/strict';
import { checkDirectory, type DatabaseSettings, type OpenDatabase, openDatabase } from '../../src/boot/index.ts';
import { type Clock, type Logger, MemoryFileSystem, SeededRandom, sleep, silentLogger } from '../../src/env/index.ts';
import { systemClock } from '../../src/platform/index.ts';
import { Simulation } from '../crash/simulation.ts';

const HOUR_MS = 3_600_000;
/** Small, so that everything happens often. */
const SETTINGS: Partial<DatabaseSettings> = {
  memtableBytes: 1 << 20,
  logLimitBytes: 1 << 20,
  blockSizeBytes: 2048,
  blockCacheBytes: 1 << 20,
  scanCacheBytes: 1 << 18,
  majorCompactionMs: 12 * HOUR_MS,
};

export interface World {
  readonly clock: Clock;
  open(): Promise<OpenDatabase>;
  /** Runs all work in the world's time. `progress`: changes as long as it gets on. */
  run(work: Promise<void>, progress: () => number): Promise<void>;
  /** A rest between two calls. */
  pause(delayMs: number): Promise<void>;
  setForward(ms: number): void;
  /** The power fails. Where it cannot, undefined. */
  readonly losePower: (() => void) | undefined;
  /** The findings of `edubba inspect check`, while nothing is open. */
  checkClosed(): Promise<void>;
  end(): Promise<void>;
}

export function memoryWorld(seed: number): World {
  const simulation = new Simulation();
  const random = new SeededRandom(seed);
  let fileSystem = new MemoryFileSystem();
  return {
    clock: simulation.clock,
    open: async () => (await simulation.open(fileSystem, SETTINGS)).opened,
    run: (work, progress) => simulation.run(work, progress),
    pause: (delayMs) => simulation.sleep(delayMs),
    setForward: (ms) => simulation.clock.advance(ms),
    losePower: () => {
      fileSystem = fileSystem.crash(random);
    },
    checkClosed: async () => {},
    end: async () => {},
  };
}

export async function directoryWorld(): Promise<World> {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-soak-'));
  let aheadMicros = 0;
  const clock: Clock = { ...systemClock, nowMicros: () => systemClock.nowMicros() + aheadMicros };
  const tell = (message: string, fields?: object): void =>
    console.log(`  database: ${message} ${JSON.stringify(fields ?? {})}`);
  const logger: Logger = { ...silentLogger, warn: tell, error: tell };
  return {
    clock,
    open: () => openDatabase({ directory, settings: { ...SETTINGS, compactionsAtOnce: 2 }, clock, logger }),
    run: async (work) => {
      // the clock's timers do not keep a process alive
      const alive = setInterval(() => {}, 1000);
      await work.finally(() => clearInterval(alive));
    },
    pause: (delayMs) => sleep(clock, delayMs),
    setForward: (ms) => {
      aheadMicros += ms * 1000;
    },
    losePower: undefined,
    checkClosed: async () => {
      const { findings } = await checkDirectory(directory);
      assert.deepEqual(findings, [], 'inspect check');
    },
    end: () => rm(directory, { recursive: true, force: true }),
  };
}
