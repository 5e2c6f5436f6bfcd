/** The calls that are about the whole cluster, or about an operation and not a row. Each answer is judged. */
import type { Client } from '../../src/client/index.ts';
import { type Env, type Random, requestContext, type RequestContext } from '../../src/env/index.ts';
import { DEFAULT_PARENT } from '../../src/model/index.ts';

export interface ClusterCallsParts {
  readonly client: Client;
  readonly env: Env;
  readonly random: Random;
  readonly timeoutMs: number;
  readonly violation: (message: string) => void;
}

export class ClusterCalls {
  readonly #parts: ClusterCallsParts;

  constructor(parts: ClusterCallsParts) {
    this.#parts = parts;
  }

  /** Makes a call that is drawn. `existing`, `deleted`: tables that surely exist, and that surely do not. */
  async step(existing: readonly string[], deleted: readonly string[]): Promise<void> {
    const kinds = [
      () => this.#list(existing, deleted),
      () => this.#operation(),
      () => this.#consistency(existing),
      () => this.#counters(),
      () => this.#compactAll(),
      () => this.#split(existing),
    ];
    await kinds[Math.floor(this.#parts.random.float() * kinds.length)]!();
  }

  async #list(existing: readonly string[], deleted: readonly string[]): Promise<void> {
    const names = await this.#parts.client.listTableNames(this.#context(), `${DEFAULT_PARENT}/tables/`);
    for (const table of existing)
      if (!names.includes(fullName(table))) this.#parts.violation(`table ${table} exists, and is not in the list`);
    for (const table of deleted)
      if (names.includes(fullName(table))) this.#parts.violation(`table ${table} was deleted, and is in the list`);
  }

  /** An operation is found until it is forgotten. */
  async #operation(): Promise<void> {
    const { client, random } = this.#parts;
    const contents = Buffer.from(random.uniqueName());
    const name = await client.operations.keep(this.#context(), DEFAULT_PARENT, contents);
    const found = await client.operations.find(this.#context(), name);
    const listed = await client.operations.list(this.#context(), `operations/${DEFAULT_PARENT}`);
    for (const kept of [found, listed.find((operation) => operation.name === name)])
      if (kept === undefined || Buffer.compare(kept.contents, contents) !== 0)
        this.#parts.violation(`operation ${name} was kept, and is found as ${JSON.stringify(kept)}`);
    await client.operations.forget(this.#context(), name);
    if ((await client.operations.find(this.#context(), name)) !== undefined)
      this.#parts.violation(`operation ${name} was forgotten, and is found`);
  }

  async #consistency([table]: readonly string[]): Promise<void> {
    if (table === undefined) return;
    const { client } = this.#parts;
    const token = await client.generateConsistencyToken(this.#context(), fullName(table));
    if (!(await client.checkConsistency(this.#context(), fullName(table), token)))
      this.#parts.violation(`table ${table} is not consistent with a token of its own`);
  }

  async #counters(): Promise<void> {
    const counters = await this.#parts.client.counters(this.#context());
    for (const [name, count] of Object.entries(counters))
      if (!(count >= 0)) this.#parts.violation(`the counter ${name} of the cluster is ${count}`);
  }

  /** Progress ascends, up to all tablets. */
  async #compactAll(): Promise<void> {
    let done = 0;
    for await (const { doneTablets, totalTablets } of this.#parts.client.compactTables(this.#context())) {
      if (doneTablets < done || doneTablets > totalTablets)
        this.#parts.violation(`a compaction went from ${done} tablets to ${doneTablets} of ${totalTablets}`);
      done = doneTablets;
    }
  }

  /** In the middle of its tablets, where they are large enough. */
  async #split([table]: readonly string[]): Promise<void> {
    if (table !== undefined) await this.#parts.client.splitTablets(this.#context(), fullName(table));
  }

  #context(): RequestContext {
    const { env, timeoutMs } = this.#parts;
    const deadlineMs = env.clock.monotonicMs() + timeoutMs;
    return requestContext({ budget: env.requestBudget, deadlineMs, principal: 'operator' });
  }
}

function fullName(table: string): string {
  return `${DEFAULT_PARENT}/tables/${table}`;
}
