import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { losingAnswers } from '../../test/contracts/lost-answers.ts';
import { quickClock } from '../../test/simulated-time.ts';
import { BigtableError, Code, codeName } from '../base/index.ts';
import { ByteBudget, type LockService, MemoryLockService, requestContext, SeededRandom } from '../env/index.ts';
import { encodeSchema, schemaPath } from '../metadata/index.ts';
import { DEFAULT_INSTANCE, DEFAULT_PROJECT, type Instance } from '../model/index.ts';
import type { InstanceChange, NewAppProfile, NewCluster, NewInstance } from '../service/index.ts';
import { instancePath } from './instance-file.ts';
import { Instances } from './instances.ts';
import { policyPath } from './policy-file.ts';

const context = requestContext({ budget: new ByteBudget(1000) });
const NAME = 'projects/p/instances/prod';

const cluster = (id: string, nodes = 1): NewCluster => ({
  id,
  zone: 'z',
  nodes,
  autoscaling: undefined,
  scalingFactor: 1,
  storage: 'ssd',
});
const profile = (id: string, on = 'c', description = ''): NewAppProfile => ({
  id,
  description,
  routing: { kind: 'single', cluster: on, allowsTransactions: true },
  isolation: { kind: 'standard', priority: 'high' },
});
const newInstance = (name = NAME, ...clusters: NewCluster[]): NewInstance => ({
  name,
  displayName: 'x',
  type: 'production',
  edition: 'enterprise',
  labels: {},
  clusters: clusters.length === 0 ? [cluster('c')] : clusters,
});

/** Clients over one lock service; tables are their schema files. */
function clients(count: number, seen: (lockService: LockService) => LockService = (lockService) => lockService) {
  const lockService = new MemoryLockService();
  const clock = quickClock();
  const addTable = async (name: string, deletionProtection = false): Promise<void> => {
    const schema = { name, id: '00000010', granularity: 'millis', families: {}, deletionProtection } as const;
    await lockService.write(schemaPath(name), encodeSchema(schema));
  };
  const made = Array.from({ length: count }, (_, i) => {
    const random = new SeededRandom(i + 1);
    const deleteTable = async (_context: unknown, name: string): Promise<void> => {
      if (!(await lockService.remove(schemaPath(name)))) throw new BigtableError(Code.NOT_FOUND, name);
    };
    return new Instances({ lockService: seen(lockService), clock, random, deleteTable, onChange: async () => {} });
  });
  return { lockService, addTable, clients: made as [Instances, ...Instances[]] };
}

/** 'OK' or the name of the error's code. */
async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'OK';
  } catch (error) {
    return error instanceof BigtableError ? codeName(error.code) : String(error);
  }
}

describe('instances', () => {
  test('that tables make are found among many, each once and in order', async () => {
    const {
      addTable,
      clients: [a],
    } = clients(1);
    const ids = ['a', 'a-b', 'a0', 'a.b', 'b', 'é', 'z'];
    for (const id of ids) for (const table of ['t', 'u']) await addTable(`projects/p/instances/${id}/tables/${table}`);
    await addTable('projects/pp/instances/other/tables/t');
    await a.createInstance(context, newInstance('projects/p/instances/made'));
    const names = (await a.listInstances(context, 'p')).map(({ name }) => name.split('/')[3]);
    assert.deepEqual(names, [...ids, 'made'].sort());
    for (const id of ids) assert.equal((await a.getInstance(context, `projects/p/instances/${id}`)).displayName, id);
    assert.equal(await outcomeOf(a.getInstance(context, 'projects/p/instances/a0b')), 'NOT_FOUND');
  });

  test('one that no one has created gets a file with its first change, and stays when its tables are gone', async () => {
    const {
      addTable,
      lockService,
      clients: [a],
    } = clients(1);
    await addTable(`${NAME}/tables/t`);
    await a.changeInstance(context, NAME, { kind: 'createAppProfile', profile: profile('b', 'edubba') });
    await lockService.remove(schemaPath(`${NAME}/tables/t`));
    const { appProfiles, createdMicros } = await a.getInstance(context, NAME);
    assert.deepEqual([appProfiles.map(({ id }) => id), createdMicros], [['b', 'default'], undefined]);
    assert.equal(await outcomeOf(a.createInstance(context, newInstance())), 'ALREADY_EXISTS');
    await a.deleteInstance(context, NAME);
    assert.equal(await outcomeOf(a.getInstance(context, NAME)), 'NOT_FOUND');
  });

  test('the default one exists in its project, and in each project that has no other; it is not deleted', async () => {
    const {
      addTable,
      clients: [a],
    } = clients(1);
    const idsOf = async (project: string): Promise<string[]> =>
      (await a.listInstances(context, project)).map(({ name }) => name.split('/')[3]!);
    const own = `projects/${DEFAULT_PROJECT}/instances/${DEFAULT_INSTANCE}`;
    const other = `projects/p/instances/${DEFAULT_INSTANCE}`;
    for (const name of [own, other]) {
      assert.equal((await a.getInstance(context, name)).name, name);
      assert.equal(await outcomeOf(a.deleteInstance(context, name)), 'FAILED_PRECONDITION');
      assert.equal(await outcomeOf(a.createInstance(context, newInstance(name))), 'ALREADY_EXISTS');
    }
    assert.equal(await outcomeOf(a.getInstance(context, `projects/p/instances/xx`)), 'NOT_FOUND');
    await addTable('projects/p/instances/xx/tables/t');
    await a.createInstance(context, newInstance(`projects/${DEFAULT_PROJECT}/instances/xx`));
    assert.deepEqual(await idsOf(DEFAULT_PROJECT), [DEFAULT_INSTANCE, 'xx'].sort());
    assert.deepEqual(await idsOf('p'), ['xx']);
    assert.deepEqual(await idsOf('q'), [DEFAULT_INSTANCE]);
    assert.equal(await outcomeOf(a.getInstance(context, other)), 'NOT_FOUND');
  });

  test('with a protected table are not deleted, nor any of its tables', async () => {
    const {
      addTable,
      clients: [a],
    } = clients(1);
    await addTable(`${NAME}/tables/a`);
    await addTable(`${NAME}/tables/b`, true);
    assert.equal(await outcomeOf(a.deleteInstance(context, NAME)), 'FAILED_PRECONDITION');
    await addTable(`${NAME}/tables/b`);
    assert.equal(await outcomeOf(a.deleteInstance(context, NAME)), 'OK');
    assert.equal(await outcomeOf(a.getInstance(context, NAME)), 'NOT_FOUND');
    assert.equal(await outcomeOf(a.deleteInstance(context, NAME)), 'NOT_FOUND');
  });

  test('creation, and a repeated deletion, have the front doors read the policy of an earlier one again', async () => {
    const { lockService } = clients(1);
    const confirmed: (readonly string[])[] = [];
    let fails = true;
    const instances = new Instances({
      lockService,
      clock: quickClock(),
      random: new SeededRandom(9),
      deleteTable: async () => {},
      onChange: async (_context, paths) => {
        if (fails) throw new BigtableError(Code.UNAVAILABLE, 'a server does not answer');
        confirmed.push(paths);
      },
    });
    const both = [instancePath(NAME), policyPath(NAME)];
    assert.equal(await outcomeOf(instances.createInstance(context, newInstance())), 'UNAVAILABLE');
    assert.equal(await outcomeOf(instances.deleteInstance(context, NAME)), 'UNAVAILABLE');
    assert.equal(await outcomeOf(instances.deleteInstance(context, NAME)), 'UNAVAILABLE', 'no door is known to know');
    fails = false;
    assert.equal(await outcomeOf(instances.deleteInstance(context, NAME)), 'NOT_FOUND');
    assert.deepEqual(confirmed, [both]);
    await instances.createInstance(context, newInstance());
    assert.deepEqual(confirmed, [both, both]);
  });

  test('deletion goes on when it is repeated, and a table that is deleted meanwhile does not stop it', async () => {
    const {
      addTable,
      lockService,
      clients: [a],
    } = clients(1);
    await a.createInstance(context, newInstance());
    for (const table of ['t', 'u']) await addTable(`${NAME}/tables/${table}`);
    let fails = true;
    const failing = new Instances({
      lockService,
      clock: quickClock(),
      random: new SeededRandom(9),
      onChange: async () => {},
      deleteTable: async (_context, name) => {
        if (name.endsWith('u') && fails) throw new BigtableError(Code.UNAVAILABLE, 'no');
        await lockService.remove(schemaPath(name));
        throw new BigtableError(Code.NOT_FOUND, 'deleted by another');
      },
    });
    assert.equal(await outcomeOf(failing.deleteInstance(context, NAME)), 'UNAVAILABLE');
    assert.ok(await a.getInstance(context, NAME));
    fails = false;
    await failing.deleteInstance(context, NAME);
    assert.equal(await outcomeOf(a.getInstance(context, NAME)), 'NOT_FOUND');
  });

  test('changed by many clients concurrently, with answers lost, have every change once', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 12 }), fc.integer(), async (count, seed) => {
        const chance = new SeededRandom(seed);
        const loses = (_call: number, method: string): boolean => method === 'write' && chance.float() < 0.3;
        let index = 0;
        const { clients: all } = clients(3, (inner) => (index++ === 1 ? losingAnswers(inner, loses).service : inner));
        const created = await Promise.all(
          all.map((client) => outcomeOf(client.createInstance(context, newInstance()))),
        );
        assert.equal(created.filter((outcome) => outcome === 'OK').length, 1);
        const changes = Array.from(
          { length: count },
          (_, i): InstanceChange => ({
            kind: 'createAppProfile',
            profile: profile(`p${i % 8}`),
          }),
        );
        const outcomes = await Promise.all(
          changes.map((change, i) => outcomeOf(all[i % 3]!.changeInstance(context, NAME, change))),
        );
        const { appProfiles, revision } = await all[0].getInstance(context, NAME);
        const expected = [...new Set(changes.map((_, i) => `p${i % 8}`)), 'default'].sort();
        assert.deepEqual(
          appProfiles.map(({ id }) => id),
          expected,
        );
        assert.equal(outcomes.filter((outcome) => outcome === 'OK').length, expected.length - 1);
        assert.ok(outcomes.every((outcome) => outcome === 'OK' || outcome === 'ALREADY_EXISTS'));
        assert.equal(revision, expected.length);
      }),
      { numRuns: 40 },
    );
  });

  test('do what a plain model does, whatever changes come', async () => {
    const id = fc.constantFrom('a', 'b', 'c');
    const change: fc.Arbitrary<InstanceChange> = fc.oneof(
      fc.record({ kind: fc.constant('createCluster' as const), cluster: id.map((each) => cluster(each)) }),
      fc.record({
        kind: fc.constant('replaceCluster' as const),
        cluster: fc.tuple(id, fc.integer({ min: 1, max: 9 })).map(([each, nodes]) => cluster(each, nodes)),
        revision: fc.integer({ min: 1, max: 6 }),
      }),
      fc.record({
        kind: fc.constant('updateCluster' as const),
        id,
        nodes: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
        autoscaling: fc.constantFrom(undefined, null, { minNodes: 1, maxNodes: 3, cpuPercent: 60, storageGib: 0 }),
      }),
      fc.record({ kind: fc.constant('deleteCluster' as const), id }),
      fc.record({
        kind: fc.constant('createAppProfile' as const),
        profile: fc.tuple(id, id).map(([each, on]) => profile(each, on)),
      }),
      fc.record({
        kind: fc.constant('replaceAppProfile' as const),
        profile: fc.tuple(id, id, fc.string()).map(([each, on, text]) => profile(each, on, text)),
        revision: fc.integer({ min: 1, max: 6 }),
      }),
      fc.record({
        kind: fc.constant('updateAppProfile' as const),
        id: fc.oneof(id, fc.constant('default')),
        description: fc.constantFrom(undefined, 'x', 'y'),
        routing: fc.option(
          id.map((on) => profile('', on).routing),
          { nil: undefined },
        ),
        isolation: fc.constantFrom(undefined, { kind: 'standard' as const, priority: 'low' as const }),
      }),
      fc.record({
        kind: fc.constant('deleteAppProfile' as const),
        id: fc.oneof(id, fc.constant('default')),
        ignoreWarnings: fc.constantFrom(undefined, false, true),
      }),
      fc.record({
        kind: fc.constant('setMemoryLayer' as const),
        id,
        isOn: fc.boolean(),
        etag: fc.option(
          fc.integer({ min: 0, max: 6 }).map((revision) => `0-${revision}`),
          { nil: undefined },
        ),
      }),
      fc.record({ kind: fc.constant('describe' as const), displayName: fc.constantFrom('x', 'y') }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 30 }), async (changes) => {
        const {
          clients: [a, b],
        } = clients(2) as unknown as { clients: [Instances, Instances] };
        const model = new PlainInstance(await a.createInstance(context, newInstance(NAME, cluster('a'), cluster('b'))));
        for (const each of changes) {
          assert.equal(
            await outcomeOf(a.changeInstance(context, NAME, each)),
            model.change(each),
            JSON.stringify(each),
          );
          assert.deepEqual({ ...(await b.getInstance(context, NAME)), labels: {} }, model.now());
        }
      }),
      { numRuns: 100 },
    );
  });

  test('are limited in number, and in what one may have', async () => {
    const {
      clients: [a],
    } = clients(1);
    await a.createInstance(context, newInstance());
    for (let i = 0; i < 499; i++)
      await a.changeInstance(context, NAME, { kind: 'createAppProfile', profile: profile(`p${i}`) });
    const more = a.changeInstance(context, NAME, { kind: 'createAppProfile', profile: profile('more') });
    assert.equal(await outcomeOf(more), 'RESOURCE_EXHAUSTED');
    for (let i = 0; i < 999; i++) await a.createInstance(context, newInstance(`projects/q/instances/i${i}`));
    const another = a.createInstance(context, newInstance('projects/q/instances/more'));
    assert.equal(await outcomeOf(another), 'RESOURCE_EXHAUSTED');
    const big = { kind: 'replaceAppProfile' as const, revision: 0 };
    let last = 'OK';
    const { appProfiles } = await a.getInstance(context, NAME);
    for (const { id, revision } of appProfiles.filter((each) => each.id !== 'default')) {
      last = await outcomeOf(
        a.changeInstance(context, NAME, { ...big, revision, profile: profile(id, 'c', 'd'.repeat(1024)) }),
      );
      if (last !== 'OK') break;
    }
    assert.equal(last, 'RESOURCE_EXHAUSTED');
  });
});

/** Instances by maps: slow and plain. */
class PlainInstance {
  readonly #instance: Instance;
  readonly #clusters = new Map<string, Instance['clusters'][number]>();
  readonly #profiles = new Map<string, Instance['appProfiles'][number]>();
  #displayName: string;
  #revision: number;

  constructor(instance: Instance) {
    this.#instance = instance;
    this.#displayName = instance.displayName;
    this.#revision = instance.revision;
    for (const each of instance.clusters) this.#clusters.set(each.id, each);
    for (const each of instance.appProfiles) this.#profiles.set(each.id, each);
  }

  now(): Instance {
    const sorted = <T extends { readonly id: string }>(all: Map<string, T>): T[] =>
      [...all.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    return {
      ...this.#instance,
      displayName: this.#displayName,
      clusters: sorted(this.#clusters),
      appProfiles: sorted(this.#profiles),
      revision: this.#revision,
    };
  }

  change(change: InstanceChange): string {
    const refusal = this.#refusal(change);
    if (refusal !== undefined) return refusal;
    const revision = ++this.#revision;
    if (change.kind === 'describe') this.#displayName = change.displayName ?? this.#displayName;
    else if (change.kind === 'deleteCluster') this.#clusters.delete(change.id);
    else if (change.kind === 'deleteAppProfile') this.#profiles.delete(change.id);
    else if (change.kind === 'setMemoryLayer')
      this.#clusters.set(change.id, {
        ...this.#clusters.get(change.id)!,
        memoryLayer: { isOn: change.isOn, revision },
      });
    else if ('cluster' in change) {
      const memoryLayer = this.#clusters.get(change.cluster.id)?.memoryLayer;
      this.#clusters.set(change.cluster.id, { ...change.cluster, revision, ...(memoryLayer && { memoryLayer }) });
    } else if (change.kind === 'updateCluster') {
      const { nodes, autoscaling, id } = change;
      const before = this.#clusters.get(id)!;
      const scaling = autoscaling === undefined ? before.autoscaling : (autoscaling ?? undefined);
      this.#clusters.set(id, { ...before, nodes: nodes ?? before.nodes, autoscaling: scaling, revision });
    } else if (change.kind === 'updateAppProfile') {
      const { kind: _, id, ...given } = change;
      const named = Object.entries(given).filter(([, value]) => value !== undefined);
      this.#profiles.set(id, { ...this.#profiles.get(id)!, ...Object.fromEntries(named), revision });
    } else this.#profiles.set(change.profile.id, { ...change.profile, revision });
    return 'OK';
  }

  #refusal(change: InstanceChange): string | undefined {
    if (change.kind === 'describe') return undefined;
    const all = change.kind.endsWith('Cluster') || change.kind === 'setMemoryLayer' ? this.#clusters : this.#profiles;
    const id = 'cluster' in change ? change.cluster.id : 'profile' in change ? change.profile.id : change.id;
    const on = 'profile' in change && change.profile.routing.kind === 'single' ? change.profile.routing.cluster : 'a';
    if (change.kind === 'deleteAppProfile' && id === 'default' && change.ignoreWarnings !== true)
      return 'FAILED_PRECONDITION';
    if ('profile' in change && !this.#clusters.has(on)) return 'FAILED_PRECONDITION';
    if (change.kind.startsWith('create')) return all.has(id) ? 'ALREADY_EXISTS' : undefined;
    if (!all.has(id)) return 'NOT_FOUND';
    if (change.kind === 'updateAppProfile' && change.routing?.kind === 'single')
      return this.#clusters.has(change.routing.cluster) ? undefined : 'FAILED_PRECONDITION';
    if ('revision' in change && all.get(id)!.revision !== change.revision) return 'ABORTED';
    if (change.kind === 'setMemoryLayer' && change.etag !== undefined) {
      const revision = this.#clusters.get(change.id)?.memoryLayer?.revision ?? 0;
      return change.etag === `${this.#instance.createdMicros!.toString(36)}-${revision}` ? undefined : 'ABORTED';
    }
    const isUsed = [...this.#profiles.values()].some(
      ({ routing }) => routing.kind === 'single' && routing.cluster === id,
    );
    if (change.kind === 'deleteCluster' && (this.#clusters.size === 1 || isUsed)) return 'FAILED_PRECONDITION';
    return undefined;
  }
}
