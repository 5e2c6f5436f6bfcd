/**
 * A client that looks after what is beside rows: an instance with its clusters, app profiles and memory layer, views and
 * schema bundles, policies, quotas, and a table that is to be backed up by itself. It makes one call at a time, and nobody
 * else changes these: so it knows what it must find, also at the front doors. Only some runs have it: they are drawn by
 * themselves, so that the others are what they were without it.
 */
import { unavailable } from '../../src/base/index.ts';
import { BigtableError } from '../../src/embedded/index.ts';
import type { Mutation } from '../../src/model/index.ts';
import { BACKUP_POLICY } from '../../src/protocol/index.ts';
import { lastDay } from '../../src/service/index.ts';
import { failureOf, TRY_AGAIN_MS } from './failure-of.ts';
import { refusedCalls } from './refused-calls.ts';
import { ABSENT } from './register.ts';
import { StewardInstance } from './steward-instance.ts';
import { StewardQuotas } from './steward-quotas.ts';
import { CLUSTER, FAMILIES, INSTANCE, ROWS, type StewardParts, StewardRecords, TABLE } from './steward-records.ts';
import { KINDS, StewardResources } from './steward-resources.ts';
import { FAILURES } from './verdicts.ts';

const MAX_THINK_MS = 1200;
/** A day. The message of the API has the field retention_period, which has the field seconds. */
const BACKUPS_OF_ITS_OWN = { [BACKUP_POLICY]: Buffer.from([10, 4, 8, 0x80, 0xa3, 5]).toString('base64') };

export class Steward {
  readonly #records: StewardRecords;
  readonly #resources: StewardResources;
  readonly #instance: StewardInstance;
  readonly #quotas: StewardQuotas;
  /** False while the instance or its table may not be there. */
  #isMade = false;
  #instancesDeleted = 0;

  constructor(parts: StewardParts) {
    this.#records = new StewardRecords(parts);
    this.#resources = new StewardResources(this.#records);
    this.#instance = new StewardInstance(this.#records);
    this.#quotas = new StewardQuotas(this.#records);
  }

  get counts() {
    return {
      resourceChanges: this.#records.changes,
      doorsJudged: this.#resources.doorsJudged,
      quotasMet: this.#quotas.met,
      instancesDeleted: this.#instancesDeleted,
    };
  }

  async work(untilMs: number): Promise<void> {
    const isOver = (): boolean => this.#records.nowMs() >= untilMs;
    while (!isOver()) {
      if (this.#isMade) await this.#step(isOver);
      else await this.#makeAll(isOver);
      await this.#records.pause(this.#records.random.float() * MAX_THINK_MS);
    }
  }

  async #step(isOver: () => boolean): Promise<unknown> {
    const what = this.#records.random.float();
    if (what < 0.25) return this.#resources.changeResource(this.#records.oneOf(KINDS));
    if (what < 0.45) return this.#resources.changePolicy();
    if (what < 0.55) return this.#instance.changeInstance();
    if (what < 0.65) return this.#instance.changeMemoryLayer();
    if (what < 0.75) return this.#quotas.meet(isOver);
    if (what < 0.85) return this.#useTable();
    if (what < 0.91) return this.#ask();
    if (what < 0.96) return this.#refuse();
    return this.#deleteAll(isOver);
  }

  async #makeAll(isOver: () => boolean): Promise<void> {
    const cluster = {
      id: CLUSTER,
      zone: 'z',
      nodes: 1,
      autoscaling: undefined,
      scalingFactor: undefined,
      storage: 'ssd',
    } as const;
    const instance = await this.#records.untilAnswered(isOver, 'ALREADY_EXISTS', () =>
      this.#records.client.instances.createInstance(this.#records.context(), {
        name: INSTANCE,
        displayName: 'made',
        type: 'production',
        edition: 'enterprise',
        labels: {},
        clusters: [cluster],
      }),
    );
    if (instance instanceof BigtableError && this.#records.nowMs() > this.#records.doubtfulUntilMs)
      this.#records.found(`the creation of ${INSTANCE}: ${instance.message}`);
    if (instance !== 'done') return;
    const table = await this.#records.untilAnswered(isOver, 'ALREADY_EXISTS', () =>
      this.#records.client.createTable(this.#records.context(), {
        name: TABLE,
        families: FAMILIES.map((name) => ({ name })),
        splits: ['k'],
        granularity: 'micros',
        deletionProtection: false,
        extra: BACKUPS_OF_ITS_OWN,
      }),
    );
    if (table instanceof BigtableError && this.#records.nowMs() > this.#records.doubtfulUntilMs)
      this.#records.found(`the creation of ${TABLE}: ${table.message}`);
    if (table !== 'done') return;
    const made = this.#records.register(INSTANCE);
    made.begin('made');
    made.done();
    this.#isMade = true;
  }

  // ---- the table

  /** A row that was written is read, whatever is kept in memory, and wherever its tablet is. */
  async #useTable(): Promise<void> {
    const row = `${this.#records.oneOf(ROWS)}-${this.#records.newValue()}`;
    const register = this.#records.register(`row ${row}`);
    const mutations: Mutation[] = [
      { kind: 'setCell', family: 'h', qualifier: 'x', timestamp: undefined, value: Buffer.from(row) },
    ];
    await this.#records.make(`row ${row}`, register, row, () =>
      this.#records.client.mutateRow(this.#records.context(), TABLE, { row, mutations }),
    );
    const written = [...this.#records.registers].filter(([name]) => name.startsWith('row '));
    const found = new Set<string>();
    const failure = await failureOf(async () => {
      for await (const { fragments } of this.#records.client.readRows(this.#records.context(), { table: TABLE }))
        for (const fragment of fragments) found.add(fragment.row);
    });
    if (failure !== undefined) return this.#records.judgeFailure(`a scan of ${TABLE}`, failure);
    for (const [name, each] of written)
      this.#records.judge(name, each, found.has(name.slice('row '.length)) ? name.slice('row '.length) : ABSENT);
  }

  async #ask(): Promise<void> {
    const { client } = this.#records.seat;
    const calls: readonly (() => Promise<unknown>)[] = [
      () => this.#quotas.judgeUsage(),
      // the master removes one that it cannot finish
      async () => (this.#records.ownBackups = await this.#backups('ready')),
      () => client.familyUsage(this.#records.context(), TABLE),
      () => client.listTablets(this.#records.context(), TABLE),
      async () => {
        for await (const _ of client.listTabletEvents(this.#records.context(), TABLE));
      },
      () => {
        const now = this.#records.seat.env.clock.nowMicros();
        return client.hotTablets.listHotTablets(
          this.#records.context(),
          `${INSTANCE}/clusters/${CLUSTER}`,
          lastDay(now),
        );
      },
    ];
    const failure = await failureOf(this.#records.oneOf(calls));
    if (failure !== undefined) this.#records.judgeFailure('a call', failure);
  }

  /** Calls that are wrong. */
  async #refuse(): Promise<void> {
    const { client, env } = this.#records.seat;
    const [what, codeName, call] = this.#records.oneOf(refusedCalls({ client, env, instance: INSTANCE, table: TABLE }));
    const failure = await failureOf(() => call(this.#records.context()));
    if (failure === undefined || (failure.codeName !== codeName && !FAILURES.has(failure.codeName)))
      this.#records.found(`${what} is answered with ${failure?.message ?? 'OK'}`);
  }

  // ---- the end of the instance

  /** A protected table protects its instance; then it goes with all that is in it. */
  async #deleteAll(isOver: () => boolean): Promise<void> {
    const protect = (deletionProtection: boolean) =>
      this.#records.untilAnswered(isOver, undefined, () =>
        this.#records.client.updateTable(this.#records.context(), TABLE, { deletionProtection, extra: {} }),
      );
    if ((await protect(true)) !== 'done') return;
    const refusal = await failureOf(() =>
      this.#records.client.instances.deleteInstance(this.#records.context(), INSTANCE),
    );
    if (refusal === undefined || (refusal.codeName !== 'FAILED_PRECONDITION' && !FAILURES.has(refusal.codeName)))
      this.#records.found(
        `the deletion of an instance with a protected table is answered with ${refusal?.message ?? 'OK'}`,
      );
    if ((await protect(false)) !== 'done') return;
    if (!(await this.#deleteBackups(isOver))) return;
    this.#isMade = false;
    const doubtfulUntilMs = this.#records.doubtfulUntilMs;
    const deletion = () =>
      this.#records.untilAnswered(isOver, 'NOT_FOUND', () =>
        this.#records.client.instances.deleteInstance(this.#records.context(), INSTANCE),
      );
    let deleted = await deletion();
    const isRefused = (): boolean => deleted instanceof BigtableError && deleted.codeName === 'FAILED_PRECONDITION';
    // refused for a backup that the master had begun before, though an earlier attempt may have deleted the table
    while (isRefused() && this.#records.doubtfulUntilMs !== doubtfulUntilMs && !isOver())
      if (await this.#deleteBackups(isOver)) deleted = await deletion();
      else await this.#records.pause(TRY_AGAIN_MS);
    // a repetition finds nothing to delete, and does not wait for the front doors
    const isRepeated = this.#records.doubtfulUntilMs !== doubtfulUntilMs;
    if (deleted instanceof BigtableError) {
      this.#isMade = isRefused() && !isRepeated;
      if (!isRefused()) this.#records.found(`the deletion of ${INSTANCE}: ${deleted.message}`);
      return;
    }
    if (deleted !== 'done') return;
    this.#instancesDeleted++;
    for (const register of this.#records.registers.values()) register.reset(false);
    for (const register of this.#records.policies.values()) register.reset(isRepeated);
    for (const name of this.#records.registers.keys())
      if (name.startsWith('row ')) this.#records.registers.delete(name);
    const found = await failureOf(() => this.#records.client.getTable(this.#records.context(), TABLE));
    if (found === undefined && this.#records.nowMs() > this.#records.doubtfulUntilMs)
      this.#records.found(`${INSTANCE} was deleted, and has a table`);
    this.#resources.judgeDoors();
  }

  async #deleteBackups(isOver: () => boolean): Promise<boolean> {
    let names: string[] = [];
    const listed = await failureOf(async () => (names = await this.#backups()));
    if (listed !== undefined) return false;
    for (const name of names) {
      // its policy goes with it
      this.#records.policies.delete(name);
      const deleted = await this.#records.untilAnswered(isOver, 'NOT_FOUND', () =>
        this.#records.client.backups.deleteBackup(this.#records.context(), name),
      );
      if (deleted instanceof BigtableError) this.#records.found(`the deletion of ${name}: ${deleted.message}`);
      if (deleted !== 'done') return false;
    }
    this.#records.ownBackups = [];
    return true;
  }

  /** The names of those in that state, by default of all. */
  async #backups(only?: 'ready'): Promise<string[]> {
    const listed = await this.#records.client.backups.listBackups(this.#records.context(), `${INSTANCE}/clusters/`);
    return listed.filter(({ state }) => only === undefined || state === only).map(({ name }) => name);
  }

  /** Judges all. Returns what was not answered, or has not come about yet; undefined if all is as it must be. */
  async readAll(): Promise<string | undefined> {
    if (!this.#isMade) return undefined;
    const failure = await failureOf(async () => {
      if ((await this.#instance.readInstance()) === undefined) throw unavailable('the instance is not read');
      for (const [resource, register] of this.#records.policies) {
        const isThere = this.#records.registers.get(resource)?.known !== ABSENT;
        const unread = isThere ? await this.#resources.readPolicy(resource, register) : undefined;
        if (unread !== undefined && unread.codeName !== 'NOT_FOUND') throw unread;
      }
      for (const name of this.#records.registers.keys()) {
        const kind = KINDS.find((each) => name.includes(`/${each}/`));
        const found = kind && (await this.#resources.findResource(kind, name));
        if (found instanceof BigtableError) throw found;
      }
      await this.#useTable();
      const { extra } = await this.#records.client.getTable(this.#records.context(), TABLE);
      const isBackedUp = extra?.[BACKUP_POLICY] === undefined || (await this.#backups()).length > 0;
      if (!isBackedUp) throw unavailable('a table that is to be backed up by itself has no backup');
    });
    this.#resources.judgeDoors();
    return failure?.message;
  }
}
