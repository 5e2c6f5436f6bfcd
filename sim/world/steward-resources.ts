/** Resources that are kept as they are, and policies: the steward changes them, and judges them at the front doors too. */
import type { Client } from '../../src/client/index.ts';
import { BigtableError } from '../../src/embedded/index.ts';
import type { ResourceKind } from '../../src/service/index.ts';
import { failureOf } from './failure-of.ts';
import { ABSENT, type Register } from './register.ts';
import { INSTANCE, type StewardRecords, TABLE } from './steward-records.ts';

const OF_TABLE: readonly ResourceKind[] = ['schemaBundles', 'authorizedViews'];
const OF_INSTANCE: readonly ResourceKind[] = ['logicalViews', 'materializedViews'];

export const KINDS: readonly ResourceKind[] = [...OF_TABLE, ...OF_INSTANCE];

export class StewardResources {
  /** How often all that one front door knows was judged. */
  doorsJudged = 0;
  readonly #records: StewardRecords;

  constructor(records: StewardRecords) {
    this.#records = records;
  }

  async changeResource(kind: ResourceKind): Promise<void> {
    const { resources } = this.#records.client;
    const parent = OF_TABLE.includes(kind) ? TABLE : INSTANCE;
    const name = `${parent}/${kind}/x${Math.floor(this.#records.random.float() * 2)}`;
    const register = this.#records.register(name);
    const found = await this.findResource(kind, name);
    if (found instanceof BigtableError) return;
    const value = this.#records.newValue();
    const contents = Buffer.from(value);
    const what = this.#records.random.float();
    if (found === undefined)
      await this.#records.make(name, register, value, () =>
        resources.create(this.#records.context(), kind, name, contents),
      );
    else if (what < 0.5)
      await this.#records.make(name, register, value, () =>
        resources.replace(this.#records.context(), kind, { ...found, contents }),
      );
    else if (what < 0.9) {
      // its policy goes first
      const policy = this.#records.policyRegister(name);
      policy.begin(ABSENT);
      const isDone = await this.#records.make(name, register, ABSENT, () =>
        resources.remove(this.#records.context(), kind, name, found.version),
      );
      if (isDone) policy.done();
      else policy.mayBeDone();
    } else await this.#judgeList(kind, parent);
    this.judgeDoors();
  }

  /** The resource as it must be; undefined where there is none. */
  async findResource(kind: ResourceKind, name: string) {
    let found: Awaited<ReturnType<Client['resources']['find']>> | undefined;
    const failure = await failureOf(
      async () => (found = await this.#records.client.resources.find(this.#records.context(), kind, name)),
    );
    if (failure !== undefined && failure.codeName !== 'NOT_FOUND') {
      this.#records.judgeFailure(`a reading of ${name}`, failure);
      return failure;
    }
    this.#records.judge(
      name,
      this.#records.register(name),
      found === undefined ? ABSENT : Buffer.from(found.contents).toString(),
    );
    return found;
  }

  async #judgeList(kind: ResourceKind, parent: string): Promise<void> {
    const failure = await failureOf(async () => {
      const listed = await this.#records.client.resources.list(this.#records.context(), kind, parent);
      const names = new Map(listed.map(({ name, contents }) => [name, Buffer.from(contents).toString()]));
      for (const [name, register] of this.#records.registers)
        if (name.startsWith(`${parent}/${kind}/`))
          this.#records.judge(`${name} in a list`, register, names.get(name) ?? ABSENT);
    });
    if (failure !== undefined) this.#records.judgeFailure(`a list of ${kind}`, failure);
  }

  async changePolicy(): Promise<void> {
    const { policies } = this.#records.client;
    const resource = this.#records.oneOf([
      INSTANCE,
      TABLE,
      `${TABLE}/columnFamilies/g`,
      ...[...this.#records.registers.keys()].filter((name) => name.includes('/x') && this.#isThere(name)),
      ...this.#records.ownBackups,
    ]);
    const register = this.#records.policyRegister(resource);
    const value = this.#records.random.float() < 0.3 ? ABSENT : `token:${this.#records.newValue()}`;
    const bindings = value === ABSENT ? [] : [{ role: 'roles/bigtable.reader', members: [value] }];
    await this.#records.make(`the policy of ${resource}`, register, value, () =>
      policies.setPolicy(this.#records.context(), resource, { bindings }),
    );
    this.judgeDoors();
    await this.readPolicy(resource, register);
  }

  async readPolicy(resource: string, register: Register): Promise<BigtableError | undefined> {
    let found = ABSENT;
    const failure = await failureOf(async () => {
      const { bindings } = await this.#records.client.policies.getPolicy(this.#records.context(), resource);
      found = bindings[0]?.members[0] ?? ABSENT;
    });
    if (failure === undefined) this.#records.judge(`the policy of ${resource}`, register, found);
    else if (failure.codeName !== 'NOT_FOUND' || this.#isThere(resource))
      this.#records.judgeFailure(`a reading of the policy of ${resource}`, failure);
    return failure;
  }

  /** True for what surely exists. */
  #isThere(resource: string): boolean {
    const known = this.#records.registers.get(resource)?.known;
    return !resource.includes('/x') || (known !== undefined && known !== ABSENT);
  }

  /** A front door of a server that surely holds its lock has heard of every change that was answered. */
  judgeDoors(): void {
    for (const { name, client } of this.#records.doors()) {
      if (!client.policySource.isCurrent) continue;
      this.doorsJudged++;
      for (const [resource, register] of this.#records.policies)
        this.#records.judge(
          `the policy of ${resource} at ${name}`,
          register,
          client.policySource.find(resource)?.bindings[0]?.members[0] ?? ABSENT,
        );
      for (const [view, register] of this.#records.registers) {
        // what went with its table may be seen by a door that has not heard of that: no server has its rows
        if (!view.includes('/authorizedViews/') || register.isReset) continue;
        // undefined proves nothing: the door asks then
        const contents = client.authorizedViews.find(view)?.contents;
        if (contents !== undefined)
          this.#records.judge(`${view} at ${name}`, register, Buffer.from(contents).toString());
      }
    }
  }
}
