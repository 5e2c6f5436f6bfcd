import {
  ByteBudget,
  LocalTransport,
  ManualClock,
  MemoryLockService,
  Metrics,
  type Random,
  requestContext,
  SeededRandom,
} from '../../src/env/index.ts';
import { Backoff, Locator, MetadataClient, SchemaCache } from '../../src/locator/index.ts';
import { type AssignedTablet, LocationCache } from '../../src/locator/location-cache.ts';
import { type MetadataCommit, ROOT_KEY, ROOT_RANGE, keyOfRow } from '../../src/metadata/index.ts';
import { type Fault, ROW } from './fault.ts';

const context = requestContext({ budget: new ByteBudget(1024) });
const ROOT_ROW = { ...ROW, tableId: '00000000', range: ROOT_RANGE };

interface Writable {
  tableId: string;
  range: { start: string; end: string | undefined };
}

function location(start: string, end: string | undefined): AssignedTablet & Writable {
  return { ...ROW, range: { start, end }, server: { name: 's', address: 's' } };
}

/** A cache of two locations; `change` gets the first one, which the cache holds. */
function cacheAfter(change: (first: Writable) => void): LocationCache {
  const cache = new LocationCache(10);
  const first = location('a', 'b');
  cache.add(first);
  cache.add(location('c', 'd'));
  change(first);
  return cache;
}

function commitRoot(...rows: MetadataCommit['rows']): Promise<unknown> {
  const clock = new ManualClock();
  const parts = {
    clock,
    transport: new LocalTransport(clock),
    lockService: new MemoryLockService(),
    random: new SeededRandom(1),
  };
  const locator = new Locator({ ...parts, metrics: new Metrics() });
  const client = new MetadataClient({ ...parts, locator, stopped: () => false });
  return client.commit([{ id: 'c', event: { kind: 'created', atMicros: 1 }, rows }], context);
}

const rootCommit = { key: ROOT_KEY, expected: undefined, row: ROOT_ROW };

export const LOCATOR_FAULTS: readonly Fault[] = [
  {
    fault: 'a cached location has moved to another table',
    message: /a location is kept under its own table/,
    run: (planted) =>
      cacheAfter((first) => {
        if (planted) first.tableId = '00000011';
      }).add(location('e', 'f')),
  },
  {
    fault: 'two cached locations overlap',
    message: /overlap/,
    run: (planted) =>
      cacheAfter((first) => {
        if (planted) first.range = { start: 'a', end: 'cc' };
      }).add(location('e', 'f')),
  },
  {
    fault: 'a cached location that is not the last has no end',
    message: /no end/,
    run: (planted) =>
      cacheAfter((first) => {
        if (planted) first.range = { start: 'a', end: undefined };
      }).add(location('e', 'f')),
  },
  {
    fault: 'a cache of locations has space for none',
    message: /has space for one/,
    run: (planted) => new LocationCache(planted ? 0 : 1),
  },
  {
    fault: 'schemas are watched twice',
    message: /a cache of schemas is started once/,
    run: async (planted) => {
      const schemas = new SchemaCache({ lockService: new MemoryLockService(), clock: new ManualClock() }, () => {});
      await schemas.start();
      try {
        if (planted) await schemas.start();
      } finally {
        schemas.stop();
      }
    },
  },
  {
    fault: 'a commit on METADATA names no row',
    message: /at least one row/,
    run: (planted) => commitRoot(...(planted ? [] : [rootCommit])),
  },
  {
    fault: 'the root tablet is deleted',
    message: /never deleted/,
    run: (planted) => commitRoot({ ...rootCommit, row: planted ? undefined : ROOT_ROW }),
  },
  {
    fault: 'the root tablet changes together with another',
    message: /with another/,
    run: (planted) => commitRoot(rootCommit, ...(planted ? [{ ...rootCommit, key: keyOfRow(ROW) }] : [])),
  },
  {
    fault: 'a wait between two attempts is no wait',
    message: /wait between two attempts/,
    run: async (planted) => {
      const random: Pick<Random, 'float'> = { float: () => (planted ? -1 : 0) };
      const clock = new ManualClock();
      const waiting = new Backoff({ clock, random: random as Random }).wait(context, new Error('never thrown'));
      if (!planted) await clock.advance(2);
      await waiting;
    },
  },
];
