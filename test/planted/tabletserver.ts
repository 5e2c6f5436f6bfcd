import { ByteBudget, ManualClock, Metrics, requestContext, SeededRandom, silentLogger } from '../../src/env/index.ts';
import { METADATA_SCHEMA, type MetadataCommit, metadataKey } from '../../src/metadata/index.ts';
import { ClockWarning } from '../../src/tabletserver/clock-warning.ts';
import { CompactionSchedule } from '../../src/tabletserver/compaction-schedule.ts';
import { EpochFloors } from '../../src/tabletserver/epoch-floors.ts';
import { MemtableBudget } from '../../src/tabletserver/memtable-budget.ts';
import { MetadataCommits } from '../../src/tabletserver/metadata-commits.ts';
import { type HostServices, ServedTabletHost } from '../../src/tabletserver/tablet-host.ts';
import { type ServedTablet, TabletMap } from '../../src/tabletserver/tablet-map.ts';
import type { TabletApi, TabletState } from '../../src/tablet/index.ts';
import { type Fault, ROW } from './fault.ts';

interface Memory {
  memtableBytes: number;
  oldestUnflushed: number | undefined;
  flush(): Promise<void>;
}

interface Writable {
  range: { start: string; end: string | undefined };
  tablet: Memory;
}

/** A served tablet, as far as the map and the budget look into it. */
function served(start: string, end: string | undefined, memtableBytes = 1): ServedTablet & Writable {
  const tablet: Memory = { memtableBytes, oldestUnflushed: undefined, flush: async () => {} };
  const { tableId, epoch } = ROW;
  const one = {
    key: metadataKey(tableId, end),
    tableId,
    range: { start, end },
    epoch,
    tablet,
    countedBytes: 0,
    requests: 0,
  };
  return one as unknown as ServedTablet & Writable;
}

function budgetOf(log: { newestPosition: number; sizeBytes(): number }): MemtableBudget {
  return new MemtableBudget({
    limitBytes: 1000,
    logLimitBytes: 400,
    metadataTabletBytes: 1000,
    log: { ...log, trimBefore: () => {} },
    clock: new ManualClock(),
    logger: silentLogger,
    metrics: new Metrics(),
  });
}

const emptyLog = { newestPosition: 0, sizeBytes: () => 0 };
const { tableId, range, epoch, files, redo, logs } = ROW;
const STATE: TabletState = { tableId, range, epoch, files, redo, logs, clips: undefined, lastServerMicros: 0 };

function commitOnHost(state: TabletState, times: number): Promise<unknown> {
  const services = {
    metadata: { commit: async () => [{ kind: 'done' }] },
    schema: () => METADATA_SCHEMA,
    uniqueName: () => 'id',
    nowMicros: () => 1,
    serverContext: () => undefined,
  } as unknown as HostServices;
  const ignore = (): void => {};
  const host = new ServedTabletHost(services, ROW, undefined as never, ignore, ignore);
  const change = { files, redo, logs, clips: undefined, lastServerMicros: 0 };
  return Promise.all(Array.from({ length: times }, () => host.commit(state, change)));
}

/** A commit on a METADATA tablet that decides `times` times. */
function judged(times: number): Promise<unknown> {
  const key = metadataKey(tableId, undefined);
  const commit: MetadataCommit = {
    id: 'c',
    event: { kind: 'released', atMicros: 1 },
    rows: [{ key, expected: { epoch: 1, version: 1 }, row: undefined }],
  };
  const transact: TabletApi['transact'] = async (_context, _rows, _filter, decide) => {
    for (let i = 0; i < times; i++) decide(new Map([[key, []]]));
  };
  const context = requestContext({ budget: new ByteBudget(1024) });
  return new MetadataCommits().commit({ transact } as unknown as TabletApi, [commit], context);
}

export const TABLETSERVER_FAULTS: readonly Fault[] = [
  {
    fault: 'a tablet is served twice',
    message: /a tablet is served once/,
    run: (planted) => {
      const tablets = new TabletMap();
      tablets.add(served('', 'm'));
      tablets.add(served(planted ? '' : 'm', planted ? 'm' : undefined));
    },
  },
  {
    fault: 'two served tablets overlap',
    message: /a tablet lies (above|below) the one (before|after) it/,
    run: (planted) => {
      const tablets = new TabletMap();
      tablets.add(served('', 'm'));
      tablets.add(served(planted ? 'l' : 'm', undefined));
    },
  },
  {
    fault: 'a tablet is served under the key of another',
    message: /a tablet is served under its own key/,
    run: (planted) => new TabletMap().add({ ...served('', 'm'), key: metadataKey(tableId, planted ? 'n' : 'm') }),
  },
  {
    fault: 'a served tablet grows over its neighbour',
    message: /overlap/,
    run: (planted) => {
      const tablets = new TabletMap();
      const first = served('', 'b');
      for (const one of [first, served('b', 'c'), served('c', 'd')]) tablets.add(one);
      if (planted) first.range = { start: '', end: 'bb' };
      tablets.add(served('d', undefined));
    },
  },
  {
    fault: 'memtables take a negative number of bytes',
    message: /less than nothing/,
    run: (planted) => budgetOf(emptyLog).add(served('', undefined, planted ? -1 : 1)),
  },
  {
    fault: 'the counted bytes of a tablet change without the sum',
    message: /the bytes of all memtables are the sum of each/,
    run: (planted) => {
      const budget = budgetOf(emptyLog);
      const first = served('', 'm');
      const second = served('m', undefined);
      budget.add(first);
      budget.add(second);
      if (planted) first.countedBytes += 10;
      budget.count(second);
    },
  },
  {
    fault: 'a tablet is counted twice',
    message: /a tablet is added once/,
    run: (planted) => {
      const budget = budgetOf(emptyLog);
      const one = served('', undefined);
      budget.add(one);
      budget.add(planted ? one : served('', undefined));
    },
  },
  {
    fault: 'positions of the log run back',
    message: /positions of the log ascend/,
    run: (planted) => {
      let sizeBytes = 0;
      const log = { newestPosition: 0, sizeBytes: () => sizeBytes };
      const positions = planted ? [500, 400] : [400, 500];
      const budget = new MemtableBudget({
        limitBytes: 1000,
        logLimitBytes: 400,
        metadataTabletBytes: 1000,
        log: Object.assign(log, { trimBefore: () => {} }),
        clock: new ManualClock(),
        logger: silentLogger,
        metrics: new Metrics(),
      });
      const one = served('', undefined);
      budget.add(one);
      for (const position of positions) {
        log.newestPosition = position;
        sizeBytes += 100;
        budget.count(one);
      }
    },
  },
  {
    fault: 'a tablet is served at an epoch at which it was released',
    message: /at or below its floor/,
    run: (planted) => {
      const floors = new EpochFloors({ serverName: 's', readRow: async () => undefined, onError: () => {} });
      floors.raise('k', 3);
      floors.passed('k', planted ? 3 : 4);
    },
  },
  {
    fault: 'two commits of one tablet are under way',
    message: /one commit of a tablet/,
    run: (planted) => commitOnHost(STATE, planted ? 2 : 1),
  },
  {
    fault: 'a tablet commits at the epoch of an earlier assignment',
    message: /its own assignment/,
    run: (planted) => commitOnHost({ ...STATE, epoch: planted ? epoch - 1 : epoch }, 1),
  },
  {
    fault: 'a commit on METADATA is judged twice',
    message: /commits are judged once/,
    run: (planted) => judged(planted ? 2 : 1),
  },
  {
    fault: 'a commit on METADATA is not judged',
    message: /each commit was judged/,
    run: (planted) => judged(planted ? 0 : 1),
  },
  {
    fault: 'a clock is reported behind a time that it has passed',
    message: /a clock is reported as behind only where it is/,
    run: (planted) => new ClockWarning({ logger: silentLogger, metrics: new Metrics() }).isBehind(10, planted ? 9 : 11),
  },
  {
    fault: 'a schedule runs a negative number of compactions',
    message: /compactions/,
    run: (planted) =>
      new CompactionSchedule({
        maxRunning: planted ? -1 : 1,
        majorMs: 1000,
        tablets: new TabletMap(),
        clock: new ManualClock(),
        random: new SeededRandom(1),
        logger: silentLogger,
        metrics: new Metrics(),
      }).stop(),
  },
];
