import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code, fromBytes, int64Bytes, readInt64BE } from '../../base/index.ts';
import { type FileOperation, MemoryFileSystem } from '../../env/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import type { Cell, Mutation, ReadModifyWriteRule } from '../../model/index.ts';
import { schemaOf, TabletFixture } from '../fixtures.ts';

const SCHEMA = schemaOf({
  f: { name: 'f' },
  capped: { name: 'capped', gcRule: { kind: 'maxVersions', versions: 1 } },
  sum: { name: 'sum', valueType: { aggregate: { kind: 'sum', input: 'int64' } } },
});

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const set = (value: string, timestamp: number | undefined = 1, qualifier = 'q'): Mutation =>
  ({ kind: 'setCell', family: 'f', qualifier, timestamp, value: Buffer.from(value) }) as Mutation;
const add = (input: number): Mutation => ({ kind: 'addToCell', family: 'sum', qualifier: 'n', timestamp: 0, input });
const increment: ReadModifyWriteRule = { family: 'f', qualifier: 'n', change: { kind: 'increment', amount: 1 } };
const append = (text: string): ReadModifyWriteRule => ({
  family: 'capped',
  qualifier: 's',
  change: { kind: 'append', suffix: Buffer.from(text) },
});
const valueIs = (value: Uint8Array | string): RowFilter => {
  const bound = { value: fromBytes(Buffer.from(value)), closed: true };
  return { kind: 'valueRange', start: bound, end: bound };
};

const numberOf = (cells: readonly Cell[]): unknown => readInt64BE(Buffer.from(cells[0]!.value), 0);
const textOf = (cells: readonly Cell[]): string => Buffer.from(cells[0]!.value).toString();
const DISK_IS_FULL = new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full');
const refused = { code: Code.RESOURCE_EXHAUSTED };

/** A tablet whose operations on files wait while they are held, and then fail if the test says so. */
class HotTablet extends TabletFixture {
  readonly #gates: Map<FileOperation, Promise<void>>;
  readonly #control: { failure: unknown; appends: number };

  private constructor(
    fileSystem: MemoryFileSystem,
    gates: Map<FileOperation, Promise<void>>,
    control: { failure: unknown; appends: number },
  ) {
    super(SCHEMA, fileSystem);
    this.#gates = gates;
    this.#control = control;
  }

  static async open(): Promise<HotTablet> {
    const gates = new Map<FileOperation, Promise<void>>();
    const control = { failure: undefined as unknown, appends: 0 };
    const fileSystem = new MemoryFileSystem({
      faults: async (operation) => {
        await gates.get(operation);
        if (operation !== 'appendLog') return;
        control.appends++;
        const { failure } = control;
        control.failure = undefined;
        if (failure !== undefined) throw failure;
      },
    });
    return new HotTablet(fileSystem, gates, control).load() as Promise<HotTablet>;
  }

  get appends(): number {
    return this.#control.appends;
  }

  /** Holds all operations of the kind until the returned function is called, perhaps with the failure of an append. */
  hold(operation: FileOperation): (failure?: unknown) => void {
    let release = (): void => {};
    this.#gates.set(operation, new Promise((resolve) => (release = resolve)));
    return (failure) => {
      this.#control.failure = failure;
      this.#gates.delete(operation);
      release();
    };
  }

  /** An append that is held: what is logged from now on is in the next ones. */
  async inFlight(): Promise<(failure?: unknown) => void> {
    const release = this.hold('appendLog');
    void this.set('other', 'x').catch(() => {});
    await turn();
    return release;
  }

  increment(row = 'r'): Promise<readonly Cell[]> {
    return this.tablet.readModifyWriteRow(this.context, row, [increment]);
  }

  append(text: string, row = 'r'): Promise<readonly Cell[]> {
    return this.tablet.readModifyWriteRow(this.context, row, [append(text)]);
  }

  check(predicate: RowFilter | undefined, whenTrue: readonly Mutation[] = [], row = 'r'): Promise<boolean> {
    return this.tablet.checkAndMutateRow(this.context, row, predicate, whenTrue, []);
  }
}

/** The outcomes so far, by promise: undefined = none. */
function outcomesOf(all: readonly Promise<unknown>[]): (string | undefined)[] {
  const outcomes: (string | undefined)[] = all.map(() => undefined);
  all.forEach((each, i) =>
    each.then(
      () => (outcomes[i] = 'answered'),
      () => (outcomes[i] = 'failed'),
    ),
  );
  return outcomes;
}

describe('a hot row', () => {
  test('concurrent increments share appends', async () => {
    const hot = await HotTablet.open();
    const before = hot.appends;
    const counts = await Promise.all(Array.from({ length: 1000 }, () => hot.increment()));
    assert.deepEqual(
      counts.map(numberOf),
      Array.from({ length: 1000 }, (_, i) => i + 1),
    );
    assert.ok(hot.appends - before < 100, `${hot.appends - before} appends`);
    assert.equal(numberOf(await hot.increment()), 1001);
    await hot.reload();
    assert.equal(numberOf(await hot.increment()), 1002);
  });

  test('a transaction sees what is not durable; a read does not, and no answer comes before it is', async () => {
    const hot = await HotTablet.open();
    const release = await hot.inFlight();
    const all = [
      hot.increment(),
      hot.increment(),
      hot.check(undefined),
      hot.check(valueIs(int64Bytes(2)), [set('two')]),
    ];
    const outcomes = outcomesOf(all);
    await turn();
    assert.deepEqual(await hot.cellsOfRow('r'), []);
    assert.deepEqual(outcomes, [undefined, undefined, undefined, undefined]);
    release();
    const [one, two, exists, isTwo] = await Promise.all(all);
    assert.deepEqual([numberOf(one as Cell[]), numberOf(two as Cell[]), exists, isTwo], [1, 2, true, true]);
    assert.deepEqual((await hot.cellsOfRow('r')).at(-1), 'r f:q@1=two');
  });

  test('transactions see plain writes of the row in the order of the log', async () => {
    const hot = await HotTablet.open();
    const release = await hot.inFlight();
    const all: Promise<unknown>[] = [hot.append('a')];
    await turn();
    all.push(hot.apply('r', { kind: 'deleteFromRow' }), hot.append('b'));
    all.push(hot.tablet.mutateRows(hot.context, [{ row: 'r', mutations: [set('v')] }]));
    all.push(hot.check(valueIs('v'), [set('seen', 2)]), hot.append('c'));
    await turn();
    assert.deepEqual(await hot.cellsOfRow('r'), []);
    release();
    const [a, , b, , matched, c] = await Promise.all(all);
    assert.deepEqual([textOf(a as Cell[]), textOf(b as Cell[]), matched, textOf(c as Cell[])], ['a', 'b', true, 'bc']);
    const inMemory = await hot.cellsOfRow('r');
    assert.equal(inMemory.length, 3);
    await hot.reload();
    assert.deepEqual(await hot.cellsOfRow('r'), inMemory);
  });

  test('what is pending counts once, also while it is applied: aggregates, versions, deletions', async () => {
    const hot = await HotTablet.open();
    await hot.apply('r', add(1), set('old', 7));
    await hot.tablet.flush();
    await hot.apply('r', add(2));
    for (let held = true; ; held = false) {
      const release = held ? await hot.inFlight() : () => {};
      const first = hot.check(undefined, [
        add(10),
        { kind: 'deleteFromColumn', family: 'f', qualifier: 'q' } as Mutation,
      ]);
      const sum = hot.check(valueIs(int64Bytes(held ? 13 : 23)), [set('right', 8)]);
      const gone = hot.check(valueIs('old'), [set('wrong', 9)]);
      await turn();
      release();
      assert.deepEqual(await Promise.all([first, sum, gone]), [true, true, false]);
      assert.deepEqual(await hot.cellsOfRow('r'), [
        'r f:q@8=right',
        `r sum:n@0=${int64Bytes(held ? 13 : 23).toString('latin1')}`,
      ]);
      if (!held) break;
    }
  });

  test('an append that is refused fails all that saw it, and nothing else', async () => {
    const hot = await HotTablet.open();
    await hot.append('kept');
    const release = hot.hold('appendLog');
    const saw = [hot.append('lost')];
    await turn();
    // the first is in flight: these wait in another append, or write nothing, or are refused
    saw.push(hot.append('too'));
    const notNumber = hot.tablet.readModifyWriteRow(hot.context, 'r', [
      { ...append(''), change: { kind: 'increment', amount: 1 } },
    ]);
    const checks = [hot.check(valueIs('keptlosttoo')), hot.check(undefined)];
    const outcomes = outcomesOf([...saw, notNumber, ...checks]);
    await turn();
    assert.deepEqual(
      outcomes,
      outcomes.map(() => undefined),
    );
    release(DISK_IS_FULL);
    for (const each of [...saw, notNumber, ...checks]) await assert.rejects(each, refused);
    assert.equal(textOf(await hot.append('!')), 'kept!');
    await hot.reload();
    assert.equal(textOf(await hot.append('!')), 'kept!!');
  });

  test('a transaction that read before the append was refused writes nothing', async () => {
    const hot = await HotTablet.open();
    await hot.append('in a file');
    await hot.tablet.flush();
    await hot.reload();
    const [releaseAppend, releaseRead] = [hot.hold('appendLog'), hot.hold('read')];
    // reads nothing: the row is hot before a block of it is loaded
    const first = hot.tablet.checkAndMutateRow(hot.context, 'r', { kind: 'blockAll' }, [], [set('x')]);
    await turn();
    const second = hot.append('2');
    const outcomes = outcomesOf([first, second]);
    await turn();
    releaseAppend(DISK_IS_FULL);
    await turn();
    assert.deepEqual(outcomes, ['failed', undefined]);
    const third = hot.append('3');
    releaseRead();
    await assert.rejects(first, refused);
    await assert.rejects(second, refused);
    assert.equal(textOf(await third), 'in a file3');
    assert.equal((await hot.cellsOfRow('r')).length, 1);
  });

  test('an append of unknown outcome fails all that saw it as unknown', async () => {
    const hot = await HotTablet.open();
    const release = hot.hold('appendLog');
    const all = [hot.increment(), hot.increment(), hot.check(undefined)];
    await turn();
    release(new BigtableError(Code.UNAVAILABLE, 'the disk hangs'));
    for (const each of all) await assert.rejects(each, { code: Code.UNAVAILABLE });
    await assert.rejects(hot.increment(), { code: Code.UNAVAILABLE });
  });

  test('nothing is answered once the lease has lapsed, not even a check that writes nothing', async () => {
    const hot = await HotTablet.open();
    const release = hot.hold('appendLog');
    const all = [hot.increment(), hot.check(undefined)];
    await turn();
    hot.isLeaseHeld = false;
    release();
    for (const each of all) await assert.rejects(each, { code: Code.UNAVAILABLE });
    hot.isLeaseHeld = true;
    assert.equal(numberOf(await hot.increment()), 2);
  });

  test('flushes, divisions, drops of rows and closings wait for pending changes or keep them', async () => {
    const hot = await HotTablet.open();
    await hot.increment();
    const release = await hot.inFlight();
    const before = hot.increment();
    await turn();
    await hot.tablet.flush();
    const after = hot.increment();
    await turn();
    release();
    assert.deepEqual((await Promise.all([before, after])).map(numberOf), [2, 3]);

    const releaseDrop = await hot.inFlight();
    const dropped = [hot.increment(), hot.tablet.dropRows(hot.context, { start: 'r', end: 's' }), hot.increment()];
    await turn();
    releaseDrop();
    const [four, , anew] = await Promise.all(dropped);
    assert.deepEqual([numberOf(four as Cell[]), numberOf(anew as Cell[])], [4, 1]);

    const releaseDivision = await hot.inFlight();
    const pending = hot.increment();
    await turn();
    const order: string[] = [];
    const divided = hot.tablet.divide('q', async () => {
      order.push('divided');
      throw new BigtableError(Code.UNAVAILABLE, 'the commit fails');
    });
    const undivided = assert.rejects(divided, { message: /the commit fails/ });
    void pending.then(() => order.push('answered'));
    await turn();
    releaseDivision();
    await undivided;
    assert.deepEqual(order, ['answered', 'divided']);

    const releaseClose = await hot.inFlight();
    const last = hot.increment();
    const check = hot.check(undefined);
    await turn();
    const closed = hot.tablet.close({ flush: true });
    const late = assert.rejects(hot.increment(), { code: Code.UNAVAILABLE });
    await turn();
    releaseClose();
    assert.equal(numberOf(await last), 3);
    assert.equal(await check, true);
    await late;
    await closed;
  });

  test('a row cools down: plain writes share their appends again without an order of their own', async () => {
    const hot = await HotTablet.open();
    const release = await hot.inFlight();
    const transaction = hot.increment();
    await turn();
    const plain = hot.apply('r', set('x'));
    await turn();
    release();
    await Promise.all([transaction, plain]);
    const [first, second] = [hot.apply('r', set('y')), hot.apply('other', set('y'))];
    assert.equal(first, second, 'one promise for all writes of an append');
    await first;
  });

  test('a large change keeps the row until it is applied, after those before it', async () => {
    const hot = await HotTablet.open();
    const wide = Array.from({ length: 2001 }, (_, i) => set('w', 1, `w${i}`));
    const all = [
      hot.append('a'),
      hot.apply('r', ...wide),
      hot.append('b'),
      hot.check(undefined, wide),
      hot.append('c'),
    ];
    const [, , b, , c] = await Promise.all(all);
    assert.deepEqual([textOf(b as Cell[]), textOf(c as Cell[])], ['ab', 'abc']);
    assert.equal((await hot.cellsOfRow('r')).length, 2002);
  });

  test('transactions that copy a large value with pauses keep the row meanwhile', async () => {
    const hot = await HotTablet.open();
    const large = 'v'.repeat(2 * 1024 * 1024);
    const all = await Promise.all([hot.append(large), hot.append('a'), hot.append('b'), hot.append('c', 'other')]);
    assert.deepEqual(all.slice(0, 3).map(textOf), [large, `${large}a`, `${large}ab`]);
    assert.equal(textOf(all[3]!), 'c');
    await hot.reload();
    assert.equal(textOf(await hot.append('c')), `${large}abc`);
  });

  test('transactions of several rows wait for pending changes', async () => {
    const hot = await HotTablet.open();
    const release = await hot.inFlight();
    const first = hot.append('a');
    await turn();
    let seen = -1;
    const commit = hot.tablet.transact(hot.context, ['q', 'r'], undefined, (cells) => {
      seen = cells.get('r')?.length ?? 0;
      return undefined;
    });
    await turn();
    assert.equal(seen, -1);
    release();
    await Promise.all([first, commit]);
    assert.equal(seen, 1);
  });
});
