/**
 * The work of a database while the power or the disk fails: on a table that is one flush away from a merging
 * compaction, one scenario for each kind of work on files. All writes go through a Witness.
 */
import assert from 'node:assert/strict';
import type { OpenDatabase } from '../../src/boot/index.ts';
import { BigtableError, type GroupLayout, type Table } from '../../src/embedded/index.ts';
import { type FileFaults, MemoryFileSystem } from '../../src/env/index.ts';
import { bytesOf, fill, mutationOf } from '../behaviour/plain-calls.ts';
import type { PlainFamilies, Step } from '../behaviour/plain-row.ts';
import { Simulation, type SimulatedDatabase } from './simulation.ts';
import { Witness } from './witness.ts';

export const TABLE = 'crash';
const FLUSHES = 7;
const ROWS = 6;
const WAIT_MS = 300_000;

const FAMILIES: PlainFamilies = new Map([
  ['f', {}],
  ['capped', { gcRule: { kind: 'maxVersions', versions: 2 } }],
  ['sum', { aggregate: 'sum' }],
]);
const GROUPS: GroupLayout = { hot: { families: ['sum'], compression: { kind: 'zstd' } } };
const OTHER_GROUPS: GroupLayout = {
  hot: { families: ['f'], compression: { kind: 'zstd-dict' } },
  cold: { families: ['capped'], compression: { kind: 'two-pass' }, inMemory: true },
};

/** A life of the database: its calls, and what is known of them. */
export class Life {
  readonly simulation: Simulation;
  readonly witness: Witness;
  readonly #db: SimulatedDatabase;
  /** True when calls may fail. */
  readonly #mayFail: boolean;
  failures: BigtableError[] = [];

  constructor(simulation: Simulation, witness: Witness, db: SimulatedDatabase, mayFail: boolean) {
    this.simulation = simulation;
    this.witness = witness;
    this.#db = db;
    this.#mayFail = mayFail;
  }

  get table(): Table {
    return this.#db.database.table(TABLE);
  }

  /** Flushes and compactions, which a table does not offer. */
  get opened(): OpenDatabase {
    return this.#db.opened;
  }

  get counters(): Readonly<Record<string, number>> {
    return this.opened.env.metrics.snapshot();
  }

  async write(key: string, ...steps: Step[]): Promise<void> {
    const { acknowledged } = this.witness.beginSteps(key, steps);
    if (await this.call(() => this.table.apply(mutationOf(key, steps)))) acknowledged();
  }

  /** Concurrent transactions on a row that has column f:FROM: each sets the next column if the one before is set. */
  async writeChain(key: string, from: number, count: number): Promise<void> {
    const columns = Array.from({ length: count }, (_, i) => from + i + 1);
    const chain = columns.map((column): Step[] => [
      { kind: 'set', family: 'f', qualifier: `${column}`, timestamp: 1n, value: 'x' },
    ]);
    const { acknowledged } = this.witness.beginChain(key, chain);
    await Promise.all(
      chain.map((steps, i) =>
        this.call(async () => {
          const before = { column: `f:${from + i}` } as const;
          if (await this.table.checkAndMutate(key, before, { then: (row) => fill(row, steps) })) acknowledged(i + 1);
        }),
      ),
    );
  }

  async dropRows(start: string, end: string): Promise<void> {
    const keys = this.witness.keys().filter((key) => key >= start && key < end);
    const { acknowledged } = this.witness.begin(keys, () => new Map());
    if (await this.call(() => this.table.deleteRows({ start: bytesOf(start), end: bytesOf(end) }))) acknowledged();
  }

  /** True if it succeeded. Throws for a failure that must not happen. */
  async call(work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      if (!this.#mayFail || !(error instanceof BigtableError) || error.message === '') throw error;
      this.failures.push(error);
      return false;
    }
  }

  /** Waits for background work, which goes on whatever happened. */
  async until(what: string, isReached: () => boolean): Promise<void> {
    const endMs = this.simulation.clock.monotonicMs() + WAIT_MS;
    while (!isReached()) {
      assert.ok(
        this.simulation.clock.monotonicMs() < endMs,
        `${what} does not come: ${this.simulation.messages.slice(-5).join('\n')}`,
      );
      await this.simulation.sleep(50);
    }
  }
}

/** Writes to all families, with deletions of every kind among them. */
async function writeSome(life: Life, round: number): Promise<void> {
  for (let i = 0; i < ROWS; i++) {
    const key = `row-${(round + i) % (ROWS + 2)}`;
    const at = { qualifier: 'q', timestamp: BigInt(round) };
    await life.write(
      key,
      { kind: 'set', family: 'f', ...at, value: `${key} of round ${round}. `.repeat(1 + ((round * i) % 40)) },
      { kind: 'set', family: 'capped', ...at, value: `capped ${round}` },
      { kind: 'add', family: 'sum', qualifier: 'n', timestamp: 0n, input: BigInt(round + i) },
    );
  }
  await life.write(`row-${round % ROWS}`, { kind: 'delete', family: 'capped', qualifier: 'q', since: BigInt(round) });
  await life.write(`row-${(round + 1) % ROWS}`, { kind: 'deleteFamily', family: 'sum' });
  await life.write(`row-${(round + 2) % ROWS}`, { kind: 'deleteRow' });
}

/** In trouble the compaction may be counted by a tablet server that has ended since, or wait for its next try. */
const ENDS_WAITING = /^(a tablet server ends itself|a tablet was lost|a \w+ compaction failed)/;

export interface Scenario {
  readonly name: string;
  /** The counter that shows that the work was done. */
  readonly counter: string;
  run(life: Life): Promise<void>;
}

const minorFlush = (life: Life): Promise<boolean> => life.call(() => life.opened.flush());

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'a minor compaction of rows, while others are written',
    counter: 'tablet.minorCompactions',
    async run(life) {
      await Promise.all([
        life.write('first', { kind: 'set', family: 'f', qualifier: 'q', timestamp: 1n, value: 'x' }),
        minorFlush(life),
      ]);
      await life.write('last', { kind: 'set', family: 'f', qualifier: 'q', timestamp: 1n, value: 'y' });
    },
  },
  {
    name: 'transactions on one row see one another, while it is written to a file',
    counter: 'tablet.minorCompactions',
    async run(life) {
      await life.write('hot', { kind: 'set', family: 'f', qualifier: '0', timestamp: 1n, value: 'x' });
      for (let round = 0; round < 3; round++)
        await Promise.all([life.writeChain('hot', 4 * round, 4), minorFlush(life)]);
    },
  },
  {
    name: 'a merging compaction, while rows are written',
    counter: 'tablet.mergingCompactions',
    async run(life) {
      await writeSome(life, FLUSHES + 1);
      await minorFlush(life);
      await life.write('last', { kind: 'set', family: 'f', qualifier: 'q', timestamp: 1n, value: 'z' });
      // until it is merged: in trouble an incarnation may have ended, and the next begins with a flush of its own
      if (life.failures.length === 0)
        await life.until('the merging compaction', () => (life.counters['tablet.mergingCompactions'] ?? 0) > 0);
    },
  },
  {
    name: 'a major compaction, while rows are deleted',
    counter: 'tablet.majorCompactions',
    async run(life) {
      await writeSome(life, FLUSHES + 2);
      await Promise.all([life.call(() => life.opened.compact()), life.write('row-1', { kind: 'deleteRow' })]);
      await life.write('row-2', { kind: 'set', family: 'capped', qualifier: 'q', timestamp: 99n, value: 'z' });
    },
  },
  {
    name: 'families move to other locality groups',
    counter: 'tablet.majorCompactions',
    async run(life) {
      const isMoved = await life.call(() => life.table.setGroups(OTHER_GROUPS));
      await writeSome(life, FLUSHES + 3);
      // a server that ended in the midst may have committed it without living to count it
      const isCounted = (): boolean =>
        (life.counters['tablet.majorCompactions'] ?? 0) > 0 ||
        life.simulation.messages.some((text) => ENDS_WAITING.test(text));
      if (isMoved && life.failures.length === 0) await life.until('the compaction of the moved families', isCounted);
      await minorFlush(life);
    },
  },
  {
    name: 'rows are dropped, and with them whole files',
    counter: 'tablet.minorCompactions',
    async run(life) {
      await life.dropRows('row-2', 'row-4');
      await life.write('row-3', { kind: 'set', family: 'f', qualifier: 'q', timestamp: 1n, value: 'again' });
      await minorFlush(life);
      await life.dropRows('a', 'z');
      await minorFlush(life);
      await life.write('row-4', { kind: 'add', family: 'sum', qualifier: 'n', timestamp: 0n, input: 5n });
    },
  },
  {
    name: 'a tablet is split, while rows are written',
    counter: 'tabletserver.splits',
    async run(life) {
      await Promise.all([
        life.call(() => life.opened.splitTablet(life.table.fullName, 'row-4')),
        life.write('row-3', { kind: 'set', family: 'f', qualifier: 'q', timestamp: 7n, value: 'low' }),
        life.write('row-5', { kind: 'deleteRow' }),
      ]);
      await writeSome(life, FLUSHES + 4);
      await life.call(() => life.opened.compact());
    },
  },
  {
    name: 'a tablet is split, one part changed, and both are merged again',
    counter: 'master.mergedTablets',
    async run(life) {
      const isSplit = await life.call(() => life.opened.splitTablet(life.table.fullName, 'row-4'));
      await life.dropRows('row-4', 'row-6');
      await minorFlush(life);
      await life.write('row-5', { kind: 'set', family: 'f', qualifier: 'q', timestamp: 3n, value: 'after the split' });
      if (isSplit) await life.call(() => life.opened.mergeTablets(life.table.fullName, 'row-4'));
      await life.write('row-2', { kind: 'deleteRow' });
    },
  },
];

/** A table with as many files as leave a merge one file short of due, closed in order. */
export class Stage {
  readonly #fileSystem: MemoryFileSystem;
  readonly #witness: Witness;

  private constructor(fileSystem: MemoryFileSystem, witness: Witness) {
    this.#fileSystem = fileSystem;
    this.#witness = witness;
  }

  static async prepare(): Promise<Stage> {
    const simulation = new Simulation();
    const fileSystem = new MemoryFileSystem();
    const witness = new Witness(FAMILIES, () => simulation.clock.nowMicros());
    const life = async (): Promise<void> => {
      const db = await simulation.open(fileSystem);
      const families = Object.fromEntries(
        [...FAMILIES].map(([name, { gcRule, aggregate }]) => [
          name,
          { ...(gcRule && { gcRule }), ...(aggregate && { aggregate }) },
        ]),
      );
      await db.database.createTable(TABLE, { families, groups: GROUPS });
      for (let round = 1; round <= FLUSHES; round++) {
        await writeSome(new Life(simulation, witness, db, false), round);
        await db.opened.flush();
      }
      await db.database.close();
    };
    await simulation.run(life());
    return new Stage(fileSystem, witness);
  }

  /** The stage anew: a file system of its own, and what is known of it. */
  set(faults?: FileFaults): { readonly fileSystem: MemoryFileSystem; witness(simulation: Simulation): Witness } {
    return {
      fileSystem: this.#fileSystem.crash('all', faults),
      witness: (simulation) => this.#witness.copy(() => simulation.clock.nowMicros()),
    };
  }
}
