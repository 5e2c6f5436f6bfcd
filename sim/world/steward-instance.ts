/** An instance, its clusters, app profiles and memory layer, which the steward changes and judges. */
import { DEFAULT_PROJECT, type Instance } from '../../src/model/index.ts';
import { failureOf } from './failure-of.ts';
import { ABSENT } from './register.ts';
import { CLUSTER, INSTANCE, type StewardRecords } from './steward-records.ts';

export class StewardInstance {
  readonly #records: StewardRecords;

  constructor(records: StewardRecords) {
    this.#records = records;
  }

  async changeInstance(): Promise<unknown> {
    const instance = await this.readInstance();
    if (instance === undefined) return undefined;
    const { instances } = this.#records.client;
    const value = this.#records.newValue();
    const change = (
      name: string,
      result: string,
      what: Parameters<typeof instances.changeInstance>[2],
    ): Promise<boolean> =>
      this.#records.make(name, this.#records.register(name), result, () =>
        instances.changeInstance(this.#records.context(), INSTANCE, what),
      );
    const isDeletion = this.#records.random.float() < 0.4;
    const kind = this.#records.oneOf(['instance', 'cluster', 'app profile']);
    if (kind === 'instance') return change(INSTANCE, value, { kind: 'describe', displayName: value });
    if (kind === 'cluster') {
      const name = `${INSTANCE}/clusters/c1`;
      const found = instance.clusters.find(({ id }) => id === 'c1');
      const cluster = { ...instance.clusters[0]!, id: 'c1', nodes: 1 + Math.floor(this.#records.random.float() * 100) };
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
  async readInstance(): Promise<Instance | undefined> {
    let instance: Instance | undefined;
    const isListed = this.#records.random.float() < 0.2;
    const failure = await failureOf(async () => {
      const { instances } = this.#records.client;
      if (!isListed) instance = await instances.getInstance(this.#records.context(), INSTANCE);
      else {
        const all = await instances.listInstances(this.#records.context(), DEFAULT_PROJECT);
        instance = all.find(({ name }) => name === INSTANCE);
        if (instance === undefined) this.#records.found(`${INSTANCE} exists, and is not in the list`);
      }
    });
    if (failure !== undefined) this.#records.judgeFailure(`a reading of ${INSTANCE}`, failure);
    if (instance === undefined) return undefined;
    this.#records.judge(INSTANCE, this.#records.register(INSTANCE), instance.displayName);
    const nodes = instance.clusters.find(({ id }) => id === 'c1')?.nodes;
    this.#records.judge(
      'cluster c1',
      this.#records.register(`${INSTANCE}/clusters/c1`),
      nodes === undefined ? ABSENT : String(nodes),
    );
    const profile = instance.appProfiles.find(({ id }) => id === 'p1');
    this.#records.judge(
      'app profile p1',
      this.#records.register(`${INSTANCE}/appProfiles/p1`),
      profile?.description ?? ABSENT,
    );
    return instance;
  }

  async changeMemoryLayer(): Promise<void> {
    const { memoryLayers } = this.#records.client;
    const cluster = `${INSTANCE}/clusters/${CLUSTER}`;
    const name = `${cluster}/memoryLayer`;
    const isOn = this.#records.random.float() < 0.6;
    await this.#records.make(name, this.#records.register(name), isOn ? 'on' : ABSENT, () =>
      memoryLayers.updateMemoryLayer(this.#records.context(), cluster, { isOn }),
    );
    let found = ABSENT;
    const failure = await failureOf(async () => {
      const layer = await memoryLayers.getMemoryLayer(this.#records.context(), cluster);
      if (layer.isOn) found = 'on';
      await memoryLayers.listMemoryLayers(this.#records.context(), INSTANCE);
    });
    if (failure === undefined) this.#records.judge(name, this.#records.register(name), found);
    else this.#records.judgeFailure(`a reading of ${name}`, failure);
  }
}
