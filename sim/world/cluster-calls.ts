/** The calls that are about the whole cluster, or about an operation and not a row. Each answer is judged. */
import { BigtableError, Code } from '../../src/base/index.ts';
import type { Client } from '../../src/client/index.ts';
import { type Env, type Random, requestContext, type RequestContext } from '../../src/env/index.ts';
import { DEFAULT_PARENT, type RowMutations } from '../../src/model/index.ts';
import { encodeOperationFile, OPERATION_FILES, operationPath } from '../../src/protocol/index.ts';
import { COUNTERS, ROWS } from './counters.ts';
import { FAILURES } from './verdicts.ts';

/** More entries of a batch than are checked in one slice. */
const MANY = 1001;
const NO_BYTES = new Uint8Array(0);

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
      () => this.compactAll(),
      () => this.#divide(existing),
      () => this.#mergeNothing(),
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

  /** An operation is found until it is forgotten, once. */
  async #operation(): Promise<void> {
    const { client, random } = this.#parts;
    const contents = Buffer.from(random.uniqueName());
    const keep = (): Promise<string> => client.operations.keep(this.#context(), DEFAULT_PARENT, contents);
    const [name, ...others] = await Promise.all([keep(), this.#writeUnreadable().then(keep), keep(), keep(), keep()]);
    if (new Set([name, ...others]).size <= others.length) this.#parts.violation(`operations share the name ${name}`);
    const found = await client.operations.find(this.#context(), name);
    const listed = await client.operations.list(this.#context(), `operations/${DEFAULT_PARENT}`);
    for (const kept of [found, listed.find((operation) => operation.name === name)])
      if (kept === undefined || Buffer.compare(kept.contents, contents) !== 0)
        this.#parts.violation(`operation ${name} was kept, and is found as ${JSON.stringify(kept)}`);
    if (listed.some((operation, i) => i > 0 && operation.name <= listed[i - 1]!.name))
      this.#parts.violation(`operations do not ascend: ${listed.map((operation) => operation.name).join(', ')}`);
    const forgotten = await Promise.all([1, 2].map(() => client.operations.forget(this.#context(), name)));
    if (forgotten.filter((isDone) => isDone).length > 1)
      this.#parts.violation(`operation ${name} was forgotten ${forgotten.length} times`);
    for (const other of others) await client.operations.forget(this.#context(), other);
    for (const gone of [name, ...others, 'operations/absent'])
      if ((await client.operations.find(this.#context(), gone)) !== undefined)
        this.#parts.violation(`operation ${gone} was forgotten, and is found`);
  }

  /** A file of operations that is too old, or of a form that no version knows: neither is found. */
  async #writeUnreadable(): Promise<void> {
    const { env, random } = this.#parts;
    const path = operationPath(Math.floor(random.float() * OPERATION_FILES));
    const name = `operations/${DEFAULT_PARENT}/operations/old`;
    const old = encodeOperationFile({ name, contents: NO_BYTES, madeMicros: 0 });
    await env.lockService.write(path, random.float() < 0.5 ? old : Buffer.from('?'), { version: 0 }).catch(() => {});
    const found = await this.#parts.client.operations.list(this.#context(), name);
    if (found.length > 0) this.#parts.violation(`an operation of ${path} is found that nobody kept`);
  }

  async #consistency([table]: readonly string[]): Promise<void> {
    if (table === undefined) return;
    const { client } = this.#parts;
    const token = await client.generateConsistencyToken(this.#context(), fullName(table));
    if (!(await client.checkConsistency(this.#context(), fullName(table), token)))
      this.#parts.violation(`table ${table} is not consistent with a token of its own`);
    const other = `${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`;
    if (await client.checkConsistency(this.#context(), fullName(table), other).then(() => true, isUnknownToken))
      this.#parts.violation(`table ${table} takes ${other} for a token of its own`);
  }

  /** Merges of NULL change nothing, however many they are; an entry without a change is refused by itself. */
  async #mergeNothing(): Promise<void> {
    const { client, violation } = this.#parts;
    const nothing = { kind: 'mergeToCell', family: 'sum', qualifier: 'x', state: undefined, timestamp: 0 } as const;
    const entries = Array.from({ length: MANY }, (_, i) => ({ row: ROWS[i % ROWS.length]!, mutations: [nothing] }));
    // nothing is in that column
    const partly: RowMutations = {
      row: ROWS[0]!,
      mutations: [nothing, { kind: 'deleteFromColumn', family: 'sum', qualifier: 'y' }],
    };
    const empty = { row: ROWS[0]!, mutations: [] };
    const table = fullName(COUNTERS);
    await client.mutateRow(this.#context(), table, entries[0]!);
    const outcomes = await client.mutateRows(this.#context(), table, [...entries, empty, partly]);
    const wrong = outcomes.findIndex((error, i) => i < MANY && error !== undefined && !FAILURES.has(error.codeName));
    if (wrong >= 0) violation(`merge ${wrong} of nothing into a counter is answered with ${outcomes[wrong]!.message}`);
    const refused = outcomes[MANY];
    if (refused?.code !== Code.INVALID_ARGUMENT) violation('an entry without mutations is not refused');
  }

  async #counters(): Promise<void> {
    const counters = await this.#parts.client.counters(this.#context());
    for (const [name, count] of Object.entries(counters))
      if (!(count >= 0)) this.#parts.violation(`the counter ${name} of the cluster is ${count}`);
  }

  /** Progress ascends, up to all tablets. */
  async compactAll(): Promise<void> {
    let done = 0;
    for await (const { doneTablets, totalTablets } of this.#parts.client.compactTables(this.#context())) {
      if (doneTablets < done || doneTablets > totalTablets)
        this.#parts.violation(`a compaction went from ${done} tablets to ${doneTablets} of ${totalTablets}`);
      done = doneTablets;
    }
  }

  /** Splits, merges and compactions that meet one another: in the middle of tablets where they are large enough. */
  async #divide([table]: readonly string[]): Promise<void> {
    if (table === undefined) return;
    const { client } = this.#parts;
    const name = fullName(table);
    const compact = async (): Promise<void> => {
      for await (const _ of client.compactTables(this.#context(), name));
    };
    const outcomes = await Promise.allSettled([
      client.splitTablets(this.#context(), name),
      client.splitTablets(this.#context(), name, 'p'),
      compact(),
      client.splitTablets(this.#context(), name),
      client.mergeTablets(this.#context(), name, 'k'),
    ]);
    const failure = outcomes.find((outcome) => outcome.status === 'rejected');
    if (failure !== undefined) throw failure.reason;
  }

  #context(): RequestContext {
    const { env, timeoutMs } = this.#parts;
    const deadlineMs = env.clock.monotonicMs() + timeoutMs;
    return requestContext({ budget: env.requestBudget, deadlineMs, principal: 'operator' });
  }
}

/** Fails with any other error. */
function isUnknownToken(thrown: unknown): false {
  if (thrown instanceof BigtableError && thrown.code === Code.INVALID_ARGUMENT) return false;
  throw thrown;
}

function fullName(table: string): string {
  return `${DEFAULT_PARENT}/tables/${table}`;
}
