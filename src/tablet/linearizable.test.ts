/**
 * Concurrent calls of all kinds on two rows of a tablet, while appends are late, refused or of unknown outcome, the
 * lease lapses, memtables are flushed and the power fails: each row's history is linearizable.
 *
 * The value of a row is the list of the operations that made it, so that a lost or a dirty update shows.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code, fromBytes } from '../base/index.ts';
import { MemoryFileSystem, SeededRandom } from '../env/index.ts';
import { type Mutation, rangeOfRow } from '../model/index.ts';
import { schemaOf, TabletFixture } from './fixtures.ts';
import type { Effect } from '../../test/linearizability/checker.ts';
import { History } from '../../test/linearizability/history.ts';

const SCHEMA = schemaOf({ f: { name: 'f', gcRule: { kind: 'maxVersions', versions: 1 } } });
const RUNS = Number(process.env['EDUBBA_HISTORIES'] ?? 300);

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const hasFailed = (error: unknown): boolean => error instanceof BigtableError && error.code === Code.RESOURCE_EXHAUSTED;

/** A tablet whose appends wait until they are let through. */
class Subject {
  fixture!: TabletFixture;
  readonly #fileSystem: MemoryFileSystem;
  readonly #waiting: ((failure: unknown) => void)[] = [];
  readonly #histories = new Map<string, History>();
  readonly #calls: Promise<unknown>[] = [];
  #isHeld = false;

  constructor() {
    this.#fileSystem = new MemoryFileSystem({
      faults: async (operation) => {
        if (operation !== 'appendLog' || !this.#isHeld) return;
        const failure = await new Promise<unknown>((resolve) => this.#waiting.push(resolve));
        if (failure !== undefined) throw failure;
      },
    });
  }

  async open(): Promise<void> {
    this.fixture = await new TabletFixture(SCHEMA, this.#fileSystem).load();
    this.#isHeld = true;
  }

  begin(kind: Call, row: string, id: number): void {
    const { tablet, context } = this.fixture;
    const set = [setTo(`${id},`)];
    const clear: Mutation[] = [{ kind: 'deleteFromRow' }];
    switch (kind) {
      case 'append': {
        const change = { kind: 'append', suffix: Buffer.from(`${id},`) } as const;
        return this.#note(
          row,
          `append ${id}`,
          (state) => ({ state: `${state}${id},`, answer: `${state}${id},` }),
          () =>
            tablet
              .readModifyWriteRow(context, row, [{ family: 'f', qualifier: 'q', change }])
              .then(([cell]) => Buffer.from(cell!.value).toString()),
        );
      }
      case 'set':
        return this.#note(
          row,
          `set ${id}`,
          () => ({ state: `${id},`, answer: undefined }),
          () => tablet.mutateRow(context, row, set),
        );
      case 'batch':
        return this.#note(
          row,
          `set in a batch ${id}`,
          () => ({ state: `${id},`, answer: undefined }),
          async () => {
            const [error] = await tablet.mutateRows(context, [{ row, mutations: set }]);
            if (error !== undefined) throw error;
          },
        );
      case 'delete':
        return this.#note(
          row,
          'delete',
          () => ({ state: '', answer: undefined }),
          () => tablet.mutateRow(context, row, clear),
        );
      case 'contains': {
        const regex = fromBytes(Buffer.from(`(.*,)?${id >> 1},.*`));
        return this.#note(
          row,
          `contains ${id >> 1}`,
          (state) => ({ state, answer: contains(state, id >> 1) }),
          () => tablet.checkAndMutateRow(context, row, { kind: 'valueRegex', regex }, [], []),
        );
      }
      case 'toggle': {
        const effect = (state: string): Effect => ({ state: state === '' ? `${id},` : '', answer: state !== '' });
        return this.#note(row, `toggle ${id}`, effect, () =>
          tablet.checkAndMutateRow(context, row, undefined, clear, set),
        );
      }
      case 'read':
        return this.#read(row);
    }
  }

  /** Lets an append through, or fails it. */
  let(failure?: BigtableError): void {
    this.#waiting.shift()?.(failure);
  }

  /** Everything is let through; the rows are read then, and again after a reopening. */
  async end(): Promise<void> {
    this.#isHeld = false;
    for (const go of this.#waiting.splice(0)) go(undefined);
    this.fixture.isLeaseHeld = true;
    await Promise.all(this.#calls);
    for (const row of this.#histories.keys()) this.#read(row);
    await Promise.all(this.#calls);
    await this.fixture.reload();
    for (const row of this.#histories.keys()) this.#read(row);
    await Promise.all(this.#calls);
    this.check('at the end');
  }

  /** The power fails now: what is under way is lost, whole, torn, or not at all. */
  async crash(seed: number): Promise<void> {
    for (const history of this.#histories.values()) history.crash();
    const after = new TabletFixture(SCHEMA, this.#fileSystem.crash(new SeededRandom(seed)));
    after.takeOver(this.fixture);
    this.fixture = await after.load();
    this.#calls.length = 0;
    for (const row of this.#histories.keys()) this.#read(row);
    await Promise.all(this.#calls);
    this.check('after the power failed');
  }

  check(when: string): void {
    for (const [row, history] of this.#histories) {
      const violation = history.check();
      assert.equal(violation, undefined, `row ${row} ${when} is ${violation}`);
    }
  }

  #read(row: string): void {
    this.#note(
      row,
      'read',
      (state) => ({ state, answer: state }),
      async () => {
        for (const line of await this.fixture.cells(undefined, rangeOfRow(row)))
          return line.slice(line.indexOf('=') + 1);
        return '';
      },
    );
  }

  #note(row: string, name: string, effect: (state: string) => Effect, work: () => Promise<unknown>): void {
    let history = this.#histories.get(row);
    if (history === undefined) this.#histories.set(row, (history = new History('')));
    const step = { isRead: name === 'read', apply: effect, toString: () => name };
    this.#calls.push(history.record(step, work, hasFailed));
  }
}

const setTo = (value: string): Mutation =>
  ({ kind: 'setCell', family: 'f', qualifier: 'q', timestamp: undefined, value: Buffer.from(value) }) as Mutation;

function contains(state: string, id: number): boolean {
  return state.split(',').slice(0, -1).includes(String(id));
}

const CALLS = ['append', 'set', 'batch', 'delete', 'contains', 'toggle', 'read'] as const;
type Call = (typeof CALLS)[number];

const call = fc.record({ kind: fc.constantFrom(...CALLS), row: fc.constantFrom('a', 'a', 'a', 'b') });
const event = fc.constantFrom('let', 'let', 'refuse', 'turn', 'turn', 'flush', 'lapse', 'renew');
const moves = fc.array(fc.oneof({ weight: 3, arbitrary: call }, { weight: 4, arbitrary: event }), {
  minLength: 4,
  maxLength: 30,
});

async function run(all: readonly (string | { readonly kind: Call; readonly row: string })[]): Promise<Subject> {
  const subject = new Subject();
  await subject.open();
  let id = 0;
  for (const move of all) {
    if (typeof move !== 'string') subject.begin(move.kind, move.row, ++id);
    else if (move === 'let') subject.let();
    else if (move === 'refuse') subject.let(new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full'));
    else if (move === 'flush') void subject.fixture.tablet.flush().catch(() => {});
    else if (move === 'turn') await turn();
    else subject.fixture.isLeaseHeld = move === 'renew';
  }
  return subject;
}

describe('rows of a tablet are linearizable', () => {
  test('with late and refused appends, flushes and lapses of the lease', async () => {
    await fc.assert(
      fc.asyncProperty(moves, async (all) => {
        const subject = await run(all);
        await subject.end();
      }),
      { numRuns: RUNS },
    );
  });

  test('when the power fails', async () => {
    await fc.assert(
      fc.asyncProperty(moves, fc.integer({ min: 1, max: 1 << 20 }), async (all, seed) => {
        const subject = await run(all);
        await subject.crash(seed);
      }),
      { numRuns: RUNS },
    );
  });

  test('an append of unknown outcome leaves the row as a replay finds it', async () => {
    await fc.assert(
      fc.asyncProperty(moves, fc.integer({ min: 1, max: 1 << 20 }), async (all, seed) => {
        const subject = await run(all);
        subject.let(new BigtableError(Code.UNAVAILABLE, 'an error of the disk'));
        for (let i = 0; i < 3; i++) await turn();
        await subject.crash(seed);
      }),
      { numRuns: RUNS },
    );
  });
});
