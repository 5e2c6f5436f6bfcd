/**
 * Whatever a program in plain JavaScript gives to a call of the library, it gets a BigtableError of code
 * INVALID_ARGUMENT, or an answer where the value means something; never a TypeError, and never a throw where a promise
 * is awaited. The calls are those of the classes' prototypes; each has good arguments here, and in each place of them,
 * however deep, every kind of garbage is tried.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  BatchError,
  BigtableError,
  type Cell,
  Code,
  Database,
  Mutations,
  open,
  Row,
  RowMutation,
  Table,
} from '../../src/embedded/index.ts';
import { DOORS } from './doors.ts';

class Marker extends Error {}

function thrower(): never {
  throw new Marker('thrown by what was given');
}

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

/** Values that are valid nowhere. */
const HOPELESS: Readonly<Record<string, () => unknown>> = {
  'a symbol': () => Symbol('s'),
  'a class': () => Map,
  'a promise': () => Promise.resolve({}),
  'a Map': () => new Map([['prefix', 'a']]),
  'a regular expression': () => /a/,
  NaN: () => Number.NaN,
  'a Date that is none': () => new Date(Number.NaN),
  'a bigint beyond int64': () => 2n ** 64n,
  'a misspelt option': () => ({ noSuchOption: 1 }),
  'an object without a prototype': () => Object.assign(Object.create(null) as object, { noSuchOption: 1 }),
  'a getter that throws': () => Object.defineProperty({}, 'signal', { enumerable: true, get: thrower }),
  'a proxy that throws': () => new Proxy({}, { get: thrower, has: thrower, ownKeys: thrower, getPrototypeOf: thrower }),
  'a proxy that is revoked': revoked,
  'an array of nothing known': () => [Symbol('s')],
};

/** Values that may be valid: undefined for an omitted option, text for a name. */
const PERHAPS: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  zero: () => 0,
  'a negative number': () => -1,
  'a fraction': () => 0.5,
  infinity: () => Number.POSITIVE_INFINITY,
  true: () => true,
  'empty text': () => '',
  text: () => 'x',
  'a lone surrogate': () => '\ud800',
  'a name of Object': () => '__proto__',
  'an empty object': () => ({}),
  'an empty array': () => [],
  'an array with a hole': () => new Array(2),
  'no bytes': () => new Uint8Array(),
  'a function': () => () => undefined,
  'an async function': () => async () => undefined,
  // as options they have no names
  'bytes that are none': () => Object.create(Uint8Array.prototype) as unknown,
  'a Date by its prototype alone': () => Object.create(Date.prototype) as unknown,
  'a signal by its prototype alone': () => Object.create(AbortSignal.prototype) as unknown,
};

interface Given {
  readonly database: Database;
  readonly table: Table;
}

const cell = (): RowMutation => new RowMutation('r').set('f:q', 'v', 1000n);
const call = (): object => ({ signal: new AbortController().signal, timeoutMs: 60_000 });
const filter = {
  kind: 'chain',
  filters: [
    { kind: 'valueRegex', regex: 'v' },
    { kind: 'condition', predicate: { kind: 'passAll' }, whenTrue: { kind: 'cellsPerRowLimit', cells: 3 } },
    { kind: 'valueRange', start: { value: 'a', closed: true } },
    { kind: 'timestampRange', range: { start: 0n, end: 9000n } },
  ],
};
const reading = (): object => ({
  families: ['f'],
  columns: ['f:q', { family: 'f', qualifier: 'q' }],
  columnRegex: 'f:q',
  columnRange: { family: 'f', start: 'a', end: 'z' },
  since: 0n,
  until: 9000n,
  versions: 2,
  cellsPerRow: 3,
  filter,
  ...call(),
});
const scaling = { minNodes: 2, maxNodes: 8, cpuPercent: 60, storageGib: 8192 };
const inDays = (days: number): Date => new Date(Date.now() + days * 86_400_000);
const rule = {
  kind: 'union',
  rules: [
    { kind: 'maxVersions', versions: 2 },
    { kind: 'maxAge', ageMicros: 1e12 },
  ],
};
const schema = (): object => ({
  families: { f: { maxVersions: 3, group: 'meta' }, g: { gcRule: rule }, sum: { aggregate: 'sum' } },
  splits: ['m'],
  granularity: 'millis',
  groups: {
    meta: { compression: { kind: 'zstd', level: 3 }, blockSizeBytes: 65536, bloomFilter: 'row', inMemory: false },
  },
  ...call(),
});

/** Good arguments of each method. */
type Arguments = () => readonly unknown[];

const OF_DATABASE: Readonly<Record<string, Arguments>> = {
  createTable: () => ['new', schema()],
  openTable: () => ['opened', schema()],
  table: () => ['t'],
  hasTable: () => ['t', call()],
  listTables: () => [call()],
  listTableNames: () => ['projects/local/instances/local/', call()],
  deleteTable: () => ['none', { ...call(), atOnce: true }],
  undeleteTable: () => ['none', call()],
  listDeletedTables: () => [call()],
  flush: () => [call()],
  compact: () => ['t', call()],
  split: () => ['none', 'r', call()],
  merge: () => ['none', 'r', call()],
  createBackup: () => ['t', 'b', { expires: inDays(10), kind: 'hot', hotToStandard: inDays(2), ...call() }],
  copyBackup: () => ['b', 'copy', { expires: inDays(10), ...call() }],
  getBackup: () => ['b', call()],
  listBackups: () => [call()],
  updateBackup: () => ['b', { expires: inDays(10), hotToStandard: inDays(3), ...call() }],
  deleteBackup: () => ['none', call()],
  restoreTable: () => ['b', 'restored', call()],
  createInstance: () => [
    'made',
    {
      displayName: 'Made',
      type: 'production',
      edition: 'enterprise',
      labels: { team: 'a' },
      clusters: { c: { zone: 'z', nodes: 2, autoscaling: scaling, scalingFactor: 2, storage: 'hdd' }, d: {} },
      ...call(),
    },
  ],
  getInstance: () => ['local', call()],
  listInstances: () => [{ project: 'local', ...call() }],
  updateInstance: () => ['local', { displayName: 'Own', labels: { team: 'a' }, ...call() }],
  deleteInstance: () => ['none', call()],
  createCluster: () => ['local', 'c', { zone: 'z', nodes: 3, autoscaling: scaling, storage: 'hdd', ...call() }],
  updateCluster: () => ['local', 'c', { nodes: 4, autoscaling: scaling, ...call() }],
  deleteCluster: () => ['local', 'none', call()],
  createAppProfile: () => [
    'local',
    'p',
    {
      description: 'batch',
      routing: { kind: 'single', cluster: 'edubba', allowsTransactions: true },
      isolation: { kind: 'standard', priority: 'low' },
      ...call(),
    },
  ],
  updateAppProfile: () => [
    'local',
    'p',
    {
      description: 'batch',
      routing: { kind: 'any', clusters: ['edubba'], hasRowAffinity: true },
      isolation: { kind: 'standard', priority: 'low' },
      ...call(),
    },
  ],
  deleteAppProfile: () => ['local', 'none', { ignoreWarnings: true, ...call() }],
  counters: () => [call()],
};

const OF_TABLE: Readonly<Record<string, Arguments>> = {
  apply: () => [cell(), call()],
  applyAll: () => [[cell(), cell()], call()],
  get: () => ['r', reading()],
  getNow: () => ['r', reading()],
  getCell: () => ['r', { family: 'f', qualifier: 'q' }, 2000n, call()],
  getMany: () => [['r', 's'], reading()],
  load: () => [[cell(), cell()], call()],
  scan: () => [{ rows: ['r'], limit: 3, reverse: true, ...reading() }],
  increment: () => ['n', 'f:n', 1, call()],
  append: () => ['a', 'f:a', 'x', call()],
  readModifyWrite: () => [
    'm',
    [
      { family: 'f', qualifier: 'm', change: { kind: 'append', suffix: 'x' } },
      { family: 'f', qualifier: 'i', change: { kind: 'increment', amount: 1 } },
    ],
    call(),
  ],
  checkAndMutate: () => [
    'r',
    { column: 'f:q', equals: 'v' },
    { then: () => undefined, otherwise: (row: Mutations) => row.set('f:q', 'w') },
    call(),
  ],
  deleteRow: () => ['gone', call()],
  deleteRows: () => [{ prefix: 'gone' }, call()],
  deleteAllRows: () => [call()],
  sampleKeys: () => [call()],
  statistics: () => [call()],
  usage: () => [call()],
  setQuota: () => [{ family: 'f', bytes: 1e9 }, call()],
  tablets: () => [call()],
  tabletEvents: () => [call()],
  readChanges: () => [{ since: 1000n, until: 2000n, ...call() }],
  keepChanges: () => [7, call()],
  schema: () => [call()],
  createFamily: () => ['made', { maxVersions: 2, maxAgeMs: 1000 }, call()],
  setGcRule: () => ['g', rule, call()],
  setGroups: () => [{ meta: { families: ['g'], compression: { kind: 'zstd', level: 3 } } }, call()],
  deleteFamily: () => ['none', call()],
};

const OF_MUTATIONS: Readonly<Record<string, Arguments>> = {
  set: () => [{ family: 'f', qualifier: 'q' }, 'v', 1000n],
  add: () => [{ family: 'sum', qualifier: 'q' }, 5, 1000n],
  merge: () => [{ family: 'sum', qualifier: 'q' }, Buffer.alloc(8), 1000n],
  delete: () => [
    { family: 'f', qualifier: 'q' },
    { since: 1n, until: 5n },
  ],
  deleteFamily: () => ['f'],
  deleteRow: () => [],
};

const OF_ROW: Readonly<Record<string, Arguments>> = {
  get: () => [{ family: 'f', qualifier: 'q' }, 1000n],
  versions: () => [{ family: 'f', qualifier: 'q' }],
  toMap: () => [],
  toJSON: () => [],
};

/** Methods that end the database, or that others than programs call. */
const LEFT_OUT = ['constructor', 'close', 'toJSON'];

function methodsOf(type: { readonly prototype: object }): string[] {
  return Object.entries(Object.getOwnPropertyDescriptors(type.prototype))
    .filter(([name, { value }]) => typeof value === 'function' && !LEFT_OUT.includes(name))
    .map(([name]) => name);
}

/** Each place in the value: as many copies of it as it has places, each with another put there. */
function* variants(value: unknown, put: () => unknown, path = ''): Generator<readonly [path: string, value: unknown]> {
  yield [path, put()];
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries())
      for (const [where, other] of variants(item, put, `${path}[${i}]`)) yield [where, value.with(i, other)];
  } else if (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype) {
    for (const [name, item] of Object.entries(value))
      for (const [where, other] of variants(item, put, `${path}.${name}`)) yield [where, { ...value, [name]: other }];
    yield [`${path}.noSuchName`, { ...value, noSuchName: 1 }];
  }
}

/** The outcome of the call; scans are read to their end. */
async function outcomeOf(target: object, method: string, args: readonly unknown[]): Promise<unknown> {
  let result: unknown;
  try {
    result = (target as Record<string, (...all: unknown[]) => unknown>)[method]?.(...args);
  } catch (error) {
    return { thrown: error };
  }
  const isAsync =
    result instanceof Promise || (typeof result === 'object' && result !== null && Symbol.asyncIterator in result);
  try {
    if (result instanceof Promise) await result;
    else if (isAsync) for await (const _row of result as AsyncIterable<Row>);
  } catch (error) {
    return { rejected: error };
  }
  return { isAsync };
}

/** Why the outcome is not as it should be; undefined where it is. */
function faultOf(
  outcome: { thrown?: unknown; rejected?: unknown; isAsync?: boolean },
  isHopeless: boolean,
  isAsync: boolean,
): string | undefined {
  if ('isAsync' in outcome) return isHopeless ? 'was taken' : undefined;
  if ('thrown' in outcome && isAsync) return `threw: ${String(outcome.thrown)}`;
  const error = outcome.thrown ?? outcome.rejected;
  if (!(error instanceof BigtableError)) return `failed with ${String(error)}`;
  if (error.code === Code.INTERNAL || error.code === Code.UNKNOWN) return `is ${error.codeName}: ${error.message}`;
  if (isHopeless && error.code !== Code.INVALID_ARGUMENT) return `is ${error.codeName}: ${error.message}`;
  const isOwn =
    error.cause === undefined ||
    error.cause instanceof Marker ||
    /^outcome \w+ threw|cannot be read: .*(revoked|incompatible receiver|this is not a Date|Illegal invocation|AbortSignal)/.test(
      error.message,
    );
  if (!isOwn && error.code === Code.INVALID_ARGUMENT && !(error instanceof BatchError))
    return `has a cause: ${error.message}`;
  return undefined;
}

async function faultsOf(target: () => object, method: string, good: Arguments, isAsync: boolean): Promise<string[]> {
  const faults: string[] = [];
  for (const [kinds, isHopeless] of [
    [HOPELESS, true],
    [PERHAPS, false],
  ] as const) {
    for (const [kind, put] of Object.entries(kinds)) {
      for (let place = 0; place < good().length; place++) {
        for (const [path, value] of variants(good()[place], put)) {
          const outcome = (await outcomeOf(target(), method, good().with(place, value))) as { isAsync?: boolean };
          const fault = faultOf(outcome, isHopeless, isAsync);
          // what the source of a load throws, it throws
          const isOfSource = method === 'load' && place === 0 && /proxy|bytes that/.test(kind);
          if (fault !== undefined && !isOfSource) faults.push(`${method}, argument ${place}${path}: ${kind} ${fault}`);
        }
      }
    }
  }
  return faults;
}

for (const door of DOORS) {
  describe(`garbage: ${door.name}`, () => {
    let given: Given;
    before(async () => {
      const database = await door.open();
      const table = await database.createTable('t', {
        families: { f: {}, g: {}, sum: { aggregate: 'sum' } },
        granularity: 'millis',
      });
      await table.apply(cell());
      given = { database, table };
    });
    after(() => given.database.close());

    for (const method of methodsOf(Database))
      test(`Database.${method}`, async () => {
        const good = OF_DATABASE[method];
        assert.ok(good !== undefined, 'say what its good arguments are');
        assert.deepEqual(await faultsOf(() => given.database, method, good, method !== 'table'), []);
      });
    for (const method of methodsOf(Table))
      test(`Table.${method}`, async () => {
        const good = OF_TABLE[method];
        assert.ok(good !== undefined, 'say what its good arguments are');
        assert.deepEqual(await faultsOf(() => given.table, method, good, method !== 'getNow'), []);
      });
  });
}

describe('garbage: what is no call', () => {
  for (const method of methodsOf(Mutations))
    test(`Mutations.${method}`, async () => {
      const good = OF_MUTATIONS[method];
      assert.ok(good !== undefined, 'say what its good arguments are');
      assert.deepEqual(await faultsOf(() => new Mutations(), method, good, false), []);
    });
  for (const method of methodsOf(Row))
    test(`Row.${method}`, async () => {
      const good = OF_ROW[method];
      assert.ok(good !== undefined, 'say what its good arguments are');
      const row = new Row('r', [{ family: 'f', qualifier: 'q', timestamp: 1, value: Buffer.from('v') }]);
      assert.deepEqual(await faultsOf(() => row, method, good, false), []);
    });
  test('new RowMutation', async () => {
    const maker = { make: (row: string) => new RowMutation(row) };
    assert.deepEqual(
      await faultsOf(
        () => maker,
        'make',
        () => ['r'],
        false,
      ),
      [],
    );
  });
  test('open', async () => {
    const opener = { open: async (...args: Parameters<typeof open>) => (await open(...args)).close() };
    const kinds = [
      ...Object.entries(HOPELESS),
      ...Object.entries(PERHAPS).filter(([kind]) => !kind.includes('text') && !/name|surrogate/.test(kind)),
    ];
    const faults: string[] = [];
    for (const [kind, put] of kinds) {
      const fault = faultOf((await outcomeOf(opener, 'open', [put()])) as object, true, true);
      if (fault !== undefined) faults.push(`open: ${kind} ${fault}`);
    }
    // names would be made as directories
    const inMemory = { open: (...settings: readonly unknown[]) => opener.open(':memory:', ...(settings as [object])) };
    faults.push(
      ...(await faultsOf(
        () => inMemory,
        'open',
        () => [{ blockCacheBytes: 0, durability: 'buffered' }],
        true,
      )),
    );
    assert.deepEqual(faults, []);
  });
});

test('a cell of a row', () => {
  const row = new Row('r', [{ family: 'f', qualifier: 'q', timestamp: 1, value: Buffer.from('v') }]);
  assert.throws(() => (row.cells[0] as Cell).int, { code: Code.FAILED_PRECONDITION });
});
