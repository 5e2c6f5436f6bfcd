/**
 * A client that looks after what is beside rows: an instance with its clusters, app profiles and memory layer, views and
 * schema bundles, policies, quotas, and a table that is to be backed up by itself. It makes one call at a time, and nobody
 * else changes these: so it knows what it must find, also at the front doors. Only some runs have it: they are drawn by
 * themselves, so that the others are what they were without it.
 */
import { unavailable } from '../../src/base/index.ts';
import type { Client } from '../../src/client/index.ts';
import { BigtableError } from '../../src/embedded/index.ts';
import { type Random, type RequestContext, sleep } from '../../src/env/index.ts';
import { DEFAULT_PROJECT, type Instance, type Mutation } from '../../src/model/index.ts';
import { BACKUP_POLICY } from '../../src/protocol/index.ts';
import { lastDay, type ResourceKind } from '../../src/service/index.ts';
import { outcomeOf } from '../../test/linearizability/calls.ts';
import { Tables } from '../../test/tables.ts';
import type { ClientSeat, Door } from './cluster.ts';
import { failureOf, TRY_AGAIN_MS, untilAnswered } from './failure-of.ts';
import { refusedCalls } from './refused-calls.ts';
import { ABSENT, LATE_MS, Register } from './register.ts';
import { FAILURES, type Verdicts } from './verdicts.ts';

const CALL_MS = 8000;
const MAX_THINK_MS = 1200;
const INSTANCE = `projects/${DEFAULT_PROJECT}/instances/stewarded`;
const TABLE = `${INSTANCE}/tables/t`;
const CLUSTER = 'c0';
const FAMILIES = ['g', 'h'];
const ROWS = ['a', 'f', 'm', 'z'];
/** A day. The message of the API has the field retention_period, which has the field seconds. */
const BACKUPS_OF_ITS_OWN = { [BACKUP_POLICY]: Buffer.from([10, 4, 8, 0x80, 0xa3, 5]).toString('base64') };
/** Bytes of a value that a quota of some values refuses soon. */
const VALUE_BYTES = 400;
const SOME_VALUES = 20;

const QUOTAS = ['the quota of g', `the quota of ${TABLE}`];

const OF_TABLE: readonly ResourceKind[] = ['schemaBundles', 'authorizedViews'];
const OF_INSTANCE: readonly ResourceKind[] = ['logicalViews', 'materializedViews'];

export interface StewardParts {
  readonly random: Random;
  readonly seat: ClientSeat;
  readonly verdicts: Verdicts;
  readonly nowMs: () => number;
  /** The front doors that are open. */
  readonly doors: () => readonly Door[];
}

export class Steward {
  readonly counts = { resourceChanges: 0, doorsJudged: 0, quotasMet: 0, instancesDeleted: 0 };
  readonly #parts: StewardParts;
  readonly #client: Client;
  readonly #tables: Tables;
  /** By the full name of what it is, and for a policy of what it is about. */
  readonly #registers = new Map<string, Register>();
  readonly #policies = new Map<string, Register>();
  /** False while the instance or its table may not be there. */
  #isMade = false;
  #values = 0;
  /** The backups that were found when they were last listed. */
  #ownBackups: readonly string[] = [];
  /** Until then calls may take effect of which an earlier attempt was answered. */
  #doubtfulUntilMs = 0;

  constructor(parts: StewardParts) {
    this.#parts = parts;
    this.#client = parts.seat.client;
    this.#tables = new Tables(parts.seat.env, parts.seat.client);
  }

  async work(untilMs: number): Promise<void> {
    const isOver = (): boolean => this.#parts.nowMs() >= untilMs;
    while (!isOver()) {
      if (this.#isMade) await this.#step(isOver);
      else await this.#makeAll(isOver);
      await this.#pause(this.#parts.random.float() * MAX_THINK_MS);
    }
  }

  async #step(isOver: () => boolean): Promise<unknown> {
    const what = this.#parts.random.float();
    if (what < 0.25) return this.#changeResource(this.#oneOf([...OF_TABLE, ...OF_INSTANCE]));
    if (what < 0.45) return this.#changePolicy();
    if (what < 0.55) return this.#changeInstance();
    if (what < 0.65) return this.#changeMemoryLayer();
    if (what < 0.75) return this.#meetQuota(isOver);
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
    const instance = await this.#untilAnswered(isOver, 'ALREADY_EXISTS', () =>
      this.#client.instances.createInstance(this.#context(), {
        name: INSTANCE,
        displayName: 'made',
        type: 'production',
        edition: 'enterprise',
        labels: {},
        clusters: [cluster],
      }),
    );
    if (instance instanceof BigtableError && this.#parts.nowMs() > this.#doubtfulUntilMs)
      this.#found(`the creation of ${INSTANCE}: ${instance.message}`);
    if (instance !== 'done') return;
    const table = await this.#untilAnswered(isOver, 'ALREADY_EXISTS', () =>
      this.#client.createTable(this.#context(), {
        name: TABLE,
        families: FAMILIES.map((name) => ({ name })),
        splits: ['k'],
        granularity: 'micros',
        deletionProtection: false,
        extra: BACKUPS_OF_ITS_OWN,
      }),
    );
    if (table instanceof BigtableError && this.#parts.nowMs() > this.#doubtfulUntilMs)
      this.#found(`the creation of ${TABLE}: ${table.message}`);
    if (table !== 'done') return;
    const made = this.#register(INSTANCE);
    made.begin('made');
    made.done();
    this.#isMade = true;
  }

  // ---- resources that are kept as they are

  async #changeResource(kind: ResourceKind): Promise<void> {
    const { resources } = this.#client;
    const parent = OF_TABLE.includes(kind) ? TABLE : INSTANCE;
    const name = `${parent}/${kind}/x${Math.floor(this.#parts.random.float() * 2)}`;
    const register = this.#register(name);
    const found = await this.#findResource(kind, name);
    if (found instanceof BigtableError) return;
    const value = this.#newValue();
    const contents = Buffer.from(value);
    const what = this.#parts.random.float();
    if (found === undefined)
      await this.#make(name, register, value, () => resources.create(this.#context(), kind, name, contents));
    else if (what < 0.5)
      await this.#make(name, register, value, () => resources.replace(this.#context(), kind, { ...found, contents }));
    else if (what < 0.9) {
      // its policy goes first
      const policy = this.#policyRegister(name);
      policy.begin(ABSENT);
      const isDone = await this.#make(name, register, ABSENT, () =>
        resources.remove(this.#context(), kind, name, found.version),
      );
      if (isDone) policy.done();
      else policy.mayBeDone();
    } else await this.#judgeList(kind, parent);
    this.#judgeDoors();
  }

  /** The resource as it must be; undefined where there is none. */
  async #findResource(kind: ResourceKind, name: string) {
    let found: Awaited<ReturnType<Client['resources']['find']>> | undefined;
    const failure = await failureOf(
      async () => (found = await this.#client.resources.find(this.#context(), kind, name)),
    );
    if (failure !== undefined && failure.codeName !== 'NOT_FOUND') {
      this.#judgeFailure(`a reading of ${name}`, failure);
      return failure;
    }
    this.#judge(name, this.#register(name), found === undefined ? ABSENT : Buffer.from(found.contents).toString());
    return found;
  }

  async #judgeList(kind: ResourceKind, parent: string): Promise<void> {
    const failure = await failureOf(async () => {
      const listed = await this.#client.resources.list(this.#context(), kind, parent);
      const names = new Map(listed.map(({ name, contents }) => [name, Buffer.from(contents).toString()]));
      for (const [name, register] of this.#registers)
        if (name.startsWith(`${parent}/${kind}/`))
          this.#judge(`${name} in a list`, register, names.get(name) ?? ABSENT);
    });
    if (failure !== undefined) this.#judgeFailure(`a list of ${kind}`, failure);
  }

  // ---- policies

  async #changePolicy(): Promise<void> {
    const { policies } = this.#client;
    const resource = this.#oneOf([
      INSTANCE,
      TABLE,
      `${TABLE}/columnFamilies/g`,
      ...[...this.#registers.keys()].filter((name) => name.includes('/x') && this.#isThere(name)),
      ...this.#ownBackups,
    ]);
    const register = this.#policyRegister(resource);
    const value = this.#parts.random.float() < 0.3 ? ABSENT : `token:${this.#newValue()}`;
    const bindings = value === ABSENT ? [] : [{ role: 'roles/bigtable.reader', members: [value] }];
    await this.#make(`the policy of ${resource}`, register, value, () =>
      policies.setPolicy(this.#context(), resource, { bindings }),
    );
    this.#judgeDoors();
    await this.#readPolicy(resource, register);
  }

  async #readPolicy(resource: string, register: Register): Promise<BigtableError | undefined> {
    let found = ABSENT;
    const failure = await failureOf(async () => {
      const { bindings } = await this.#client.policies.getPolicy(this.#context(), resource);
      found = bindings[0]?.members[0] ?? ABSENT;
    });
    if (failure === undefined) this.#judge(`the policy of ${resource}`, register, found);
    else if (failure.codeName !== 'NOT_FOUND' || this.#isThere(resource))
      this.#judgeFailure(`a reading of the policy of ${resource}`, failure);
    return failure;
  }

  /** True for what surely exists. */
  #isThere(resource: string): boolean {
    const known = this.#registers.get(resource)?.known;
    return !resource.includes('/x') || (known !== undefined && known !== ABSENT);
  }

  /** A front door of a server that surely holds its lock has heard of every change that was answered. */
  #judgeDoors(): void {
    for (const { name, client } of this.#parts.doors()) {
      if (!client.policySource.isCurrent) continue;
      this.counts.doorsJudged++;
      for (const [resource, register] of this.#policies)
        this.#judge(
          `the policy of ${resource} at ${name}`,
          register,
          client.policySource.find(resource)?.bindings[0]?.members[0] ?? ABSENT,
        );
      for (const [view, register] of this.#registers) {
        // what went with its table may be seen by a door that has not heard of that: no server has its rows
        if (!view.includes('/authorizedViews/') || register.isReset) continue;
        // undefined proves nothing: the door asks then
        const contents = client.authorizedViews.find(view)?.contents;
        if (contents !== undefined) this.#judge(`${view} at ${name}`, register, Buffer.from(contents).toString());
      }
    }
  }

  // ---- the instance and its parts

  async #changeInstance(): Promise<unknown> {
    const instance = await this.#readInstance();
    if (instance === undefined) return undefined;
    const { instances } = this.#client;
    const value = this.#newValue();
    const change = (
      name: string,
      result: string,
      what: Parameters<typeof instances.changeInstance>[2],
    ): Promise<boolean> =>
      this.#make(name, this.#register(name), result, () => instances.changeInstance(this.#context(), INSTANCE, what));
    const isDeletion = this.#parts.random.float() < 0.4;
    const kind = this.#oneOf(['instance', 'cluster', 'app profile']);
    if (kind === 'instance') return change(INSTANCE, value, { kind: 'describe', displayName: value });
    if (kind === 'cluster') {
      const name = `${INSTANCE}/clusters/c1`;
      const found = instance.clusters.find(({ id }) => id === 'c1');
      const cluster = { ...instance.clusters[0]!, id: 'c1', nodes: 1 + Math.floor(this.#parts.random.float() * 100) };
      const nodes = String(cluster.nodes);
      if (found === undefined) return change(name, nodes, { kind: 'createCluster', cluster });
      if (isDeletion) return change(name, ABSENT, { kind: 'deleteCluster', id: 'c1' });
      return change(name, nodes, { kind: 'replaceCluster', cluster, revision: found.revision });
    }
    const name = `${INSTANCE}/appProfiles/p1`;
    const found = instance.appProfiles.find(({ id }) => id === 'p1');
    const profile = {
      id: 'p1',
      description: value,
      routing: { kind: 'any', clusters: [], hasRowAffinity: false },
      isolation: { kind: 'standard', priority: 'high' },
    } as const;
    if (found === undefined) return change(name, value, { kind: 'createAppProfile', profile });
    if (isDeletion) return change(name, ABSENT, { kind: 'deleteAppProfile', id: 'p1' });
    return change(name, value, { kind: 'replaceAppProfile', profile, revision: found.revision });
  }

  /** Judged; undefined where it could not be read. */
  async #readInstance(): Promise<Instance | undefined> {
    let instance: Instance | undefined;
    const isListed = this.#parts.random.float() < 0.2;
    const failure = await failureOf(async () => {
      const { instances } = this.#client;
      if (!isListed) instance = await instances.getInstance(this.#context(), INSTANCE);
      else {
        const all = await instances.listInstances(this.#context(), DEFAULT_PROJECT);
        instance = all.find(({ name }) => name === INSTANCE);
        if (instance === undefined) this.#found(`${INSTANCE} exists, and is not in the list`);
      }
    });
    if (failure !== undefined) this.#judgeFailure(`a reading of ${INSTANCE}`, failure);
    if (instance === undefined) return undefined;
    this.#judge(INSTANCE, this.#register(INSTANCE), instance.displayName);
    const nodes = instance.clusters.find(({ id }) => id === 'c1')?.nodes;
    this.#judge('cluster c1', this.#register(`${INSTANCE}/clusters/c1`), nodes === undefined ? ABSENT : String(nodes));
    const profile = instance.appProfiles.find(({ id }) => id === 'p1');
    this.#judge('app profile p1', this.#register(`${INSTANCE}/appProfiles/p1`), profile?.description ?? ABSENT);
    return instance;
  }

  async #changeMemoryLayer(): Promise<void> {
    const { memoryLayers } = this.#client;
    const cluster = `${INSTANCE}/clusters/${CLUSTER}`;
    const name = `${cluster}/memoryLayer`;
    const isOn = this.#parts.random.float() < 0.6;
    await this.#make(name, this.#register(name), isOn ? 'on' : ABSENT, () =>
      memoryLayers.updateMemoryLayer(this.#context(), cluster, { isOn }),
    );
    let found = ABSENT;
    const failure = await failureOf(async () => {
      const layer = await memoryLayers.getMemoryLayer(this.#context(), cluster);
      if (layer.isOn) found = 'on';
      await memoryLayers.listMemoryLayers(this.#context(), INSTANCE);
    });
    if (failure === undefined) this.#judge(name, this.#register(name), found);
    else this.#judgeFailure(`a reading of ${name}`, failure);
  }

  // ---- quotas

  /** A quota is set, met and removed. */
  async #meetQuota(isOver: () => boolean): Promise<void> {
    const family = this.#parts.random.float() < 0.5 ? 'g' : undefined;
    const isSpacious = this.#parts.random.float() < 0.4;
    const quotaBytes = isSpacious ? SOME_VALUES * VALUE_BYTES : 1;
    const set = (bytes: number | undefined): Promise<void> =>
      this.#client.setQuota(this.#context(), TABLE, { family, quotaBytes: bytes });
    const what = `the quota of ${family ?? TABLE}`;
    const register = this.#register(what);
    await this.#make(what, register, String(quotaBytes), () => set(quotaBytes));
    const isKnown = register.known === String(quotaBytes);
    for (let i = 0; i < (isSpacious ? SOME_VALUES : 3); i++) {
      const failure = await this.#add(i);
      if (failure === undefined && !isSpacious && isKnown) this.#found(`a write is answered beyond ${what}`);
      if (!isRefusal(failure)) continue;
      this.counts.quotasMet++;
      if (isSpacious) break;
    }
    const kept = await this.#write({ kind: 'deleteFromRow' });
    if (isRefusal(kept)) this.#found(`a deletion is refused by a quota: ${kept?.message}`);
    await this.#judgeUsage();
    while (!(await this.#make(what, register, ABSENT, () => set(undefined))) && !isOver())
      await this.#pause(TRY_AGAIN_MS);
    const failure = await this.#add(0);
    const areNone = QUOTAS.every((each) => this.#register(each).known === ABSENT);
    if (isRefusal(failure) && areNone)
      this.#found(`a write is refused by a quota that was removed: ${failure?.message}`);
  }

  /** Adds a cell to both families: by one call or another. */
  #add(number: number): Promise<BigtableError | undefined> {
    const value = Buffer.alloc(VALUE_BYTES, this.#newValue());
    const cells = FAMILIES.map(
      (family): Mutation => ({ kind: 'setCell', family, qualifier: 'x', timestamp: undefined, value }),
    );
    const row = this.#oneOf(ROWS);
    const context = this.#context();
    if (number % 4 === 1)
      return failureOf(async () => {
        const [failure] = await this.#client.mutateRows(context, TABLE, [{ row, mutations: cells }]);
        if (failure !== undefined) throw failure;
      });
    if (number % 4 === 2)
      return failureOf(() => {
        const rules = FAMILIES.map(
          (family) => ({ family, qualifier: 'y', change: { kind: 'append', suffix: value } }) as const,
        );
        return this.#client.readModifyWriteRow(context, TABLE, row, rules);
      });
    if (number % 4 === 3)
      return failureOf(() =>
        this.#client.checkAndMutateRow(context, { table: TABLE, row, whenTrue: cells, whenFalse: cells }),
      );
    return this.#write(...cells);
  }

  #write(...mutations: readonly Mutation[]): Promise<BigtableError | undefined> {
    return failureOf(() => this.#client.mutateRow(this.#context(), TABLE, { row: this.#oneOf(ROWS), mutations }));
  }

  async #judgeUsage(): Promise<void> {
    const failure = await failureOf(async () => {
      const { families, table } = await this.#client.tableUsage(this.#context(), TABLE);
      const names = families.map((each) => each.family).join(', ');
      if (names !== FAMILIES.join(', ')) this.#found(`the usage is that of the families ${names}`);
      const quotas = [families[0]?.quotaBytes, table?.quotaBytes];
      for (const [i, quota] of QUOTAS.entries()) this.#judge(quota, this.#register(quota), String(quotas[i] ?? ABSENT));
      for (const each of families)
        for (const [what, count] of Object.entries(each))
          if (typeof count === 'number' && !(count >= 0)) this.#found(`${what} of family ${each.family} is ${count}`);
    });
    if (failure !== undefined) this.#judgeFailure('a reading of the usage', failure);
  }

  // ---- the table

  /** A row that was written is read, whatever is kept in memory, and wherever its tablet is. */
  async #useTable(): Promise<void> {
    const row = `${this.#oneOf(ROWS)}-${this.#newValue()}`;
    const register = this.#register(`row ${row}`);
    const mutations: Mutation[] = [
      { kind: 'setCell', family: 'h', qualifier: 'x', timestamp: undefined, value: Buffer.from(row) },
    ];
    await this.#make(`row ${row}`, register, row, () =>
      this.#client.mutateRow(this.#context(), TABLE, { row, mutations }),
    );
    const written = [...this.#registers].filter(([name]) => name.startsWith('row '));
    const found = new Set<string>();
    const failure = await failureOf(async () => {
      for await (const { fragments } of this.#client.readRows(this.#context(), { table: TABLE }))
        for (const fragment of fragments) found.add(fragment.row);
    });
    if (failure !== undefined) return this.#judgeFailure(`a scan of ${TABLE}`, failure);
    for (const [name, each] of written)
      this.#judge(name, each, found.has(name.slice('row '.length)) ? name.slice('row '.length) : ABSENT);
  }

  async #ask(): Promise<void> {
    const { client } = this.#parts.seat;
    const calls: readonly (() => Promise<unknown>)[] = [
      () => this.#judgeUsage(),
      // the master removes one that it cannot finish
      async () => (this.#ownBackups = await this.#backups('ready')),
      () => client.familyUsage(this.#context(), TABLE),
      () => client.listTablets(this.#context(), TABLE),
      async () => {
        for await (const _ of client.listTabletEvents(this.#context(), TABLE));
      },
      () => {
        const now = this.#parts.seat.env.clock.nowMicros();
        return client.hotTablets.listHotTablets(this.#context(), `${INSTANCE}/clusters/${CLUSTER}`, lastDay(now));
      },
    ];
    const failure = await failureOf(this.#oneOf(calls));
    if (failure !== undefined) this.#judgeFailure('a call', failure);
  }

  /** Calls that are wrong. */
  async #refuse(): Promise<void> {
    const { client, env } = this.#parts.seat;
    const [what, codeName, call] = this.#oneOf(refusedCalls({ client, env, instance: INSTANCE, table: TABLE }));
    const failure = await failureOf(() => call(this.#context()));
    if (failure === undefined || (failure.codeName !== codeName && !FAILURES.has(failure.codeName)))
      this.#found(`${what} is answered with ${failure?.message ?? 'OK'}`);
  }

  // ---- the end of the instance

  /** A protected table protects its instance; then it goes with all that is in it. */
  async #deleteAll(isOver: () => boolean): Promise<void> {
    const protect = (deletionProtection: boolean) =>
      this.#untilAnswered(isOver, undefined, () =>
        this.#client.updateTable(this.#context(), TABLE, { deletionProtection, extra: {} }),
      );
    if ((await protect(true)) !== 'done') return;
    const refusal = await failureOf(() => this.#client.instances.deleteInstance(this.#context(), INSTANCE));
    if (refusal === undefined || (refusal.codeName !== 'FAILED_PRECONDITION' && !FAILURES.has(refusal.codeName)))
      this.#found(`the deletion of an instance with a protected table is answered with ${refusal?.message ?? 'OK'}`);
    if ((await protect(false)) !== 'done') return;
    if (!(await this.#deleteBackups(isOver))) return;
    this.#isMade = false;
    const doubtfulUntilMs = this.#doubtfulUntilMs;
    const deletion = () =>
      this.#untilAnswered(isOver, 'NOT_FOUND', () => this.#client.instances.deleteInstance(this.#context(), INSTANCE));
    let deleted = await deletion();
    const isRefused = (): boolean => deleted instanceof BigtableError && deleted.codeName === 'FAILED_PRECONDITION';
    // refused for a backup that the master had begun before, though an earlier attempt may have deleted the table
    while (isRefused() && this.#doubtfulUntilMs !== doubtfulUntilMs && !isOver())
      if (await this.#deleteBackups(isOver)) deleted = await deletion();
      else await this.#pause(TRY_AGAIN_MS);
    // a repetition finds nothing to delete, and does not wait for the front doors
    const isRepeated = this.#doubtfulUntilMs !== doubtfulUntilMs;
    if (deleted instanceof BigtableError) {
      this.#isMade = isRefused() && !isRepeated;
      if (!isRefused()) this.#found(`the deletion of ${INSTANCE}: ${deleted.message}`);
      return;
    }
    if (deleted !== 'done') return;
    this.counts.instancesDeleted++;
    for (const register of this.#registers.values()) register.reset(false);
    for (const register of this.#policies.values()) register.reset(isRepeated);
    for (const name of this.#registers.keys()) if (name.startsWith('row ')) this.#registers.delete(name);
    const found = await failureOf(() => this.#client.getTable(this.#context(), TABLE));
    if (found === undefined && this.#parts.nowMs() > this.#doubtfulUntilMs)
      this.#found(`${INSTANCE} was deleted, and has a table`);
    this.#judgeDoors();
  }

  async #deleteBackups(isOver: () => boolean): Promise<boolean> {
    let names: string[] = [];
    const listed = await failureOf(async () => (names = await this.#backups()));
    if (listed !== undefined) return false;
    for (const name of names) {
      // its policy goes with it
      this.#policies.delete(name);
      const deleted = await this.#untilAnswered(isOver, 'NOT_FOUND', () =>
        this.#client.backups.deleteBackup(this.#context(), name),
      );
      if (deleted instanceof BigtableError) this.#found(`the deletion of ${name}: ${deleted.message}`);
      if (deleted !== 'done') return false;
    }
    this.#ownBackups = [];
    return true;
  }

  /** The names of those in that state, by default of all. */
  async #backups(only?: 'ready'): Promise<string[]> {
    const listed = await this.#client.backups.listBackups(this.#context(), `${INSTANCE}/clusters/`);
    return listed.filter(({ state }) => only === undefined || state === only).map(({ name }) => name);
  }

  /** Judges all. Returns what was not answered, or has not come about yet; undefined if all is as it must be. */
  async readAll(): Promise<string | undefined> {
    if (!this.#isMade) return undefined;
    const failure = await failureOf(async () => {
      if ((await this.#readInstance()) === undefined) throw unavailable('the instance is not read');
      for (const [resource, register] of this.#policies) {
        const isThere = this.#registers.get(resource)?.known !== ABSENT;
        const unread = isThere ? await this.#readPolicy(resource, register) : undefined;
        if (unread !== undefined && unread.codeName !== 'NOT_FOUND') throw unread;
      }
      for (const name of this.#registers.keys()) {
        const kind = [...OF_TABLE, ...OF_INSTANCE].find((each) => name.includes(`/${each}/`));
        const found = kind && (await this.#findResource(kind, name));
        if (found instanceof BigtableError) throw found;
      }
      await this.#useTable();
      const { extra } = await this.#client.getTable(this.#context(), TABLE);
      const isBackedUp = extra?.[BACKUP_POLICY] === undefined || (await this.#backups()).length > 0;
      if (!isBackedUp) throw unavailable('a table that is to be backed up by itself has no backup');
    });
    this.#judgeDoors();
    return failure?.message;
  }

  // ---- how changes are made and judged

  /** Makes a change of what one register holds. False: it was not answered. */
  async #make(name: string, register: Register, value: string, call: () => Promise<unknown>): Promise<boolean> {
    register.begin(value);
    const failure = await failureOf(call);
    if (failure === undefined) {
      this.counts.resourceChanges++;
      register.done();
      return true;
    }
    if (outcomeOf(failure).kind === 'unknown' || FAILURES.has(failure.codeName)) {
      register.mayBeDone();
      return false;
    }
    register.refused();
    // after a change of unknown outcome what is there may be another one, or nothing
    const isExplained = register.known === undefined && ['NOT_FOUND', 'ALREADY_EXISTS'].includes(failure.codeName);
    if (!isExplained) this.#found(`a change of ${name} fails: ${failure.message}`);
    return false;
  }

  #judge(what: string, register: Register, found: string): void {
    if (!register.mayBe(found))
      this.#found(`${what} is ${found === ABSENT ? 'not there' : found}, and must be ${register}`);
  }

  #judgeFailure(what: string, { codeName, message }: BigtableError): void {
    if (!FAILURES.has(codeName)) this.#found(`${what} fails: ${message}`);
  }

  #found(what: string): void {
    this.#parts.verdicts.add('resources', what);
  }

  #register(name: string): Register {
    return registerIn(this.#registers, name, this.#parts.nowMs);
  }

  #policyRegister(resource: string): Register {
    return registerIn(this.#policies, resource, this.#parts.nowMs);
  }

  /** Makes the call until it is answered. `done`: the code that says that an earlier attempt has done it. */
  async #untilAnswered(
    isOver: () => boolean,
    done: string | undefined,
    call: () => Promise<unknown>,
  ): Promise<'done' | 'unknown' | BigtableError> {
    const { clock } = this.#parts.seat.process;
    let attempts = 0;
    const outcome = await untilAnswered({ clock, isOver, done }, () => {
      attempts++;
      return call();
    });
    if (attempts > 1) this.#doubtfulUntilMs = this.#parts.nowMs() + LATE_MS;
    return outcome;
  }

  #pause(delayMs: number): Promise<void> {
    return sleep(this.#parts.seat.process.clock, delayMs);
  }

  #context(): RequestContext {
    return this.#tables.context(CALL_MS);
  }

  #newValue(): string {
    return `v${++this.#values}`;
  }

  #oneOf<T>(choices: readonly [T, ...T[]] | readonly T[]): T {
    return choices[Math.floor(this.#parts.random.float() * choices.length)]!;
  }
}

function registerIn(registers: Map<string, Register>, name: string, nowMs: () => number): Register {
  let register = registers.get(name);
  if (register === undefined) registers.set(name, (register = new Register(nowMs)));
  return register;
}

function isRefusal(failure: BigtableError | undefined): boolean {
  return failure?.codeName === 'RESOURCE_EXHAUSTED' && failure.message.includes('quota');
}
