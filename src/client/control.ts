/**
 * The calls of an operator (service/control-service.ts) in terms of the internal calls. Work on tables proceeds tablet
 * by tablet, by the client's locations, so that it covers every row whatever is split, merged or moved meanwhile.
 */
import { assert, BigtableError, type ByteString, Code, toBigtableError } from '../base/index.ts';
import {
  callCancelled,
  CallContext,
  checkContext,
  ContextWait,
  type Env,
  type RequestContext,
  sleep,
  within,
} from '../env/index.ts';
import type { MetadataClient, SchemaCache } from '../locator/index.ts';
import {
  ALL_ROWS,
  type FamilyUsage,
  type Limits,
  type RowRange,
  sumTraffic,
  sumUsages,
  type TableUsage,
  type TabletHistory,
  type TabletStatistics,
  usageOfTable,
} from '../model/index.ts';
import { callServer, type NamedCounters } from '../protocol/index.ts';
import {
  checkQuota,
  checkTableName,
  checkTabletBound,
  type CompactionProgress,
  type ControlService,
  type QuotaChange,
} from '../service/index.ts';
import { onServers } from './each-server.ts';
import { eachTablet, ofEachTablet } from './each-tablet.ts';
import type { MasterCaller } from './master-caller.ts';
import type { Router } from './router.ts';

/** The number of tablets of one call that are concurrently compacted, or wait for that at their servers. */
const MAX_CONCURRENT_TABLETS = 16;
/** A call whose tablets take long reports at this interval. */
const PROGRESS_MS = 10_000;

export interface ControlParts {
  readonly env: Env;
  readonly limits: Limits;
  readonly router: Router;
  readonly schemas: SchemaCache;
  readonly master: MasterCaller;
  readonly metadata: MetadataClient;
}

/** Rows that are to be compacted: of a tablet, as it was when the call began. */
interface Target {
  readonly table: string;
  readonly range: RowRange;
}

export class Control implements ControlService {
  readonly #parts: ControlParts;

  constructor(parts: ControlParts) {
    this.#parts = parts;
  }

  async *compactTables(context: RequestContext, table?: string): AsyncIterable<CompactionProgress> {
    if (table !== undefined) checkTableName(table, this.#parts.limits);
    const {
      env: { clock, transport, requestBudget: budget },
    } = this.#parts;
    checkContext(context, clock);
    const { deadlineMs, principal, priority, trace } = context;
    // ends with the iteration too: a caller that ends it cancels compactions that have not begun
    const own = new CallContext({ budget, deadlineMs, principal, priority, trace });
    const outer = new ContextWait(context, clock, own);
    try {
      const work = new Compactions(this.#parts, own, await this.#targets(own, table));
      yield* work.run();
      if (table === undefined)
        await onServers(
          this.#parts.env,
          ({ address }) => callServer(transport, address, 'compactMetadata', {}, own),
          own,
        );
      work.check();
    } finally {
      outer.stop();
      own.interrupt(callCancelled());
    }
  }

  async flush(context: RequestContext): Promise<void> {
    await onServers(
      this.#parts.env,
      ({ address }) => callServer(this.#parts.env.transport, address, 'flush', {}, context),
      context,
    );
  }

  async splitTablets(context: RequestContext, table: string, row?: ByteString): Promise<void> {
    const {
      env: { transport },
      limits,
      router,
    } = this.#parts;
    if (row !== undefined) {
      checkTabletBound(table, row, limits);
      await router.callRow(table, row, context, (tableId, address) =>
        callServer(transport, address, 'split', { tableId, row, near: 'row' }, context),
      );
      return;
    }
    checkTableName(table, limits);
    let split = 0;
    let refusal: BigtableError | undefined;
    await eachTablet(router, context, table, ALL_ROWS, async ({ id }, { server, range }) => {
      try {
        await callServer(
          transport,
          server.address,
          'split',
          { tableId: id, row: range.start, near: 'middle' },
          context,
        );
        split++;
      } catch (error) {
        if (!(error instanceof BigtableError && error.code === Code.FAILED_PRECONDITION)) throw error;
        refusal = error;
      }
    });
    if (split === 0 && refusal !== undefined) throw refusal;
  }

  async mergeTablets(context: RequestContext, table: string, row: ByteString): Promise<void> {
    checkTabletBound(table, row, this.#parts.limits);
    await this.#parts.master.call('mergeTablets', { name: table, row }, context);
  }

  async listTablets(context: RequestContext, table: string): Promise<readonly TabletStatistics[]> {
    checkTableName(table, this.#parts.limits);
    const { router, env } = this.#parts;
    return ofEachTablet(router, context, table, ({ id }, { server, range }) =>
      callServer(env.transport, server.address, 'tabletStatistics', { tableId: id, range }, context),
    );
  }

  async *listTabletEvents(context: RequestContext, table: string): AsyncIterable<TabletHistory> {
    checkTableName(table, this.#parts.limits);
    const { id } = await this.#parts.router.table(table, context);
    for await (const some of this.#parts.metadata.scanEvents(id, context)) yield* some;
  }

  async familyUsage(context: RequestContext, table: string): Promise<readonly FamilyUsage[]> {
    checkTableName(table, this.#parts.limits);
    const { router, env } = this.#parts;
    const byTablet = await ofEachTablet(router, context, table, ({ id }, { server, range }) =>
      callServer(env.transport, server.address, 'familyUsage', { tableId: id, range }, context),
    );
    return sumUsages(byTablet.flat());
  }

  async tableUsage(context: RequestContext, table: string): Promise<TableUsage> {
    const { router, env } = this.#parts;
    const usage = await this.familyUsage(context, table);
    const schema = await router.table(table, context);
    const traffic = await onServers(
      env,
      ({ address }) => callServer(env.transport, address, 'traffic', { tableId: schema.id }, context),
      context,
    );
    return usageOfTable(schema, usage, sumTraffic(traffic));
  }

  async setQuota(context: RequestContext, table: string, change: QuotaChange): Promise<void> {
    checkQuota(table, change, this.#parts.limits);
    const { master, schemas } = this.#parts;
    const { family, quotaBytes } = change;
    const message = {
      name: table,
      ...(family !== undefined && { family }),
      ...(quotaBytes !== undefined && { quotaBytes }),
    };
    try {
      await master.call('setQuota', message, context);
    } finally {
      await within(schemas.refresh(table), context, this.#parts.env.clock);
    }
  }

  async counters(context: RequestContext): Promise<Readonly<Record<string, number>>> {
    const answers = await onServers(
      this.#parts.env,
      ({ address }) => callServer(this.#parts.env.transport, address, 'counters', {}, context),
      context,
    );
    answers.push(await this.#parts.master.call('counters', {}, context));
    // in one thread a master and a server share their counters
    const byName = new Map(answers.map((each: NamedCounters) => [each.name, each.counters]));
    const sums = new Map<string, number>();
    for (const counters of byName.values())
      for (const [name, count] of Object.entries(counters)) sums.set(name, (sums.get(name) ?? 0) + count);
    return Object.fromEntries([...sums].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** The present tablets of one table or of all. */
  async #targets(context: RequestContext, table: string | undefined): Promise<Target[]> {
    const targets: Target[] = [];
    const names = table === undefined ? (await this.#parts.schemas.list('')).map(({ name }) => name) : [table];
    for (const name of names) {
      try {
        await eachTablet(
          this.#parts.router,
          context,
          name,
          ALL_ROWS,
          async (_schema, { range }) => void targets.push({ table: name, range }),
        );
      } catch (error) {
        if (table !== undefined || !isGone(error)) throw error;
      }
    }
    return targets;
  }
}

/** One call's compactions: several concurrently, in the order of the targets. */
class Compactions {
  readonly #parts: ControlParts;
  readonly #context: RequestContext;
  readonly #targets: readonly Target[];
  readonly #running = new Set<Promise<void>>();
  #doneTablets = 0;
  #failure: BigtableError | undefined;

  constructor(parts: ControlParts, context: RequestContext, targets: readonly Target[]) {
    this.#parts = parts;
    this.#context = context;
    this.#targets = targets;
  }

  async *run(): AsyncIterable<CompactionProgress> {
    yield this.#progress();
    for (let next = 0, reported = 0; reported < this.#targets.length; ) {
      while (next < this.#targets.length && this.#running.size < MAX_CONCURRENT_TABLETS)
        this.#start(this.#targets[next++]!);
      // some may have ended while the caller had the last answer
      if (this.#doneTablets === reported) await this.#oneIsDone();
      reported = this.#doneTablets;
      yield this.#progress();
    }
    assert(this.#running.size === 0, 'no compaction runs after the last one was reported');
  }

  /** Throws the error of the first tablet that failed. */
  check(): void {
    if (this.#failure) throw this.#failure;
  }

  #progress(): CompactionProgress {
    return { doneTablets: this.#doneTablets, totalTablets: this.#targets.length };
  }

  #start(target: Target): void {
    const run = this.#compact(target)
      .catch((thrown: unknown) => void (this.#failure ??= toBigtableError(thrown)))
      .then(() => {
        this.#doneTablets++;
        this.#running.delete(run);
      });
    this.#running.add(run);
  }

  /** A tablet that is split meanwhile is compacted as its parts. */
  async #compact({ table, range }: Target): Promise<void> {
    const {
      router,
      env: { transport },
    } = this.#parts;
    try {
      await eachTablet(router, this.#context, table, range, ({ id }, { server, range: now }) =>
        callServer(transport, server.address, 'compact', { tableId: id, range: now }, this.#context),
      );
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }

  /** Waits for a tablet to be done, or for the time of the next report. */
  async #oneIsDone(): Promise<void> {
    const done = new AbortController();
    const long = sleep(this.#parts.env.clock, PROGRESS_MS, done.signal).catch(() => {});
    try {
      await within(Promise.race([...this.#running, long]), this.#context, this.#parts.env.clock);
    } finally {
      done.abort();
    }
  }
}

/** A table that was deleted meanwhile has nothing to compact. */
function isGone(error: unknown): boolean {
  return error instanceof BigtableError && error.code === Code.NOT_FOUND;
}
