/** The calls that are about the whole cluster, or about an operation and not a row. Each answer is judged. */
import { BigtableError, Code } from '../../src/base/index.ts';
import type { Client } from '../../src/client/index.ts';
import { type Env, type Random, requestContext, type RequestContext } from '../../src/env/index.ts';
import { DEFAULT_PARENT, type FamilySchema, type RowMutations, type TableSchema } from '../../src/model/index.ts';
import { encodeOperationFile, OPERATION_FILES, operationPath } from '../../src/protocol/index.ts';
import { COUNTERS, ROWS } from './counters.ts';
import { FAMILY } from './known-table.ts';
import { FAILURES } from './verdicts.ts';

/** The share of runs in which some counters are called often, and how often: loads are uneven then. */
const HOT_SHARE = 0.25;
const MAX_RATE = 160;
/** Entries for a row, at most, however long ago the last ones were. */
const MAX_HOT_ENTRIES = 900;
/** More entries of a batch than are checked in one slice. */
const MANY = 1001;
const NO_BYTES = new Uint8Array(0);
const NOTHING = { kind: 'mergeToCell', family: 'sum', qualifier: 'x', state: undefined, timestamp: 0 } as const;

export interface ClusterCallsParts {
  readonly client: Client;
  readonly env: Env;
  readonly random: Random;
  readonly timeoutMs: number;
  readonly violation: (message: string) => void;
}

export class ClusterCalls {
  readonly #parts: ClusterCallsParts;
  /** Calls a second for each row of counters; undefined where loads are left as they are. */
  readonly #rates: readonly number[] | undefined;
  #heatedMs = 0;

  constructor(parts: ClusterCallsParts) {
    this.#parts = parts;
    if (parts.random.float() < HOT_SHARE) this.#rates = ROWS.map(() => parts.random.float() * MAX_RATE);
  }

  /** As many entries that change nothing as there would be calls, each counted as one. */
  async heat(): Promise<void> {
    const { client, env } = this.#parts;
    if (this.#rates === undefined) return;
    const nowMs = env.clock.monotonicMs();
    const seconds = (nowMs - this.#heatedMs) / 1000;
    this.#heatedMs = nowMs;
    const entries = ROWS.flatMap((row, i) => {
      const length = Math.min(MAX_HOT_ENTRIES, Math.floor(this.#rates![i]! * seconds));
      return Array.from({ length }, () => ({ row, mutations: [NOTHING] }));
    });
    if (entries.length > 0) await client.mutateRows(this.#context(), fullName(COUNTERS), entries);
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
      () => this.#protect(existing),
      () => this.#changeSum(),
      () => this.#createTwice(),
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
    const entries = Array.from({ length: MANY }, (_, i) => ({ row: ROWS[i % ROWS.length]!, mutations: [NOTHING] }));
    // nothing is in that column
    const partly: RowMutations = {
      row: ROWS[0]!,
      mutations: [NOTHING, { kind: 'deleteFromColumn', family: 'sum', qualifier: 'y' }],
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

  /** A table that is protected, and its families, are not deleted. */
  async #protect([table]: readonly string[]): Promise<void> {
    if (table === undefined) return;
    const { client } = this.#parts;
    const name = fullName(table);
    const change = async (deletionProtection: boolean): Promise<void> =>
      void (await client.updateTable(this.#context(), name, {
        deletionProtection,
        extra: { protected: String(deletionProtection) },
      }));
    await Promise.all([change(true), change(true)]);
    const drop = { kind: 'drop', name: FAMILY } as const;
    const isSettled =
      (await this.#refused('FAILED_PRECONDITION', client.deleteTable(this.#context(), name))) &&
      (await this.#refused('FAILED_PRECONDITION', client.modifyFamilies(this.#context(), name, [drop])));
    // a call without an answer may come to the master later: it must find the table protected
    if (isSettled) await change(false);
  }

  /** At most one of two creations of a table is answered, and it makes the table as requested. */
  async #createTwice(): Promise<void> {
    const { client, random, violation } = this.#parts;
    const name = fullName(`twice-${random.uniqueName().slice(0, 8)}`);
    const extra = { made: random.uniqueName() };
    const groups = { other: { families: [FAMILY] } };
    const families = [{ name: FAMILY }];
    const table = {
      name,
      families,
      splits: ['m'],
      granularity: 'micros',
      deletionProtection: false,
      groups,
      extra,
    } as const;
    const created = await Promise.allSettled([1, 2].map(() => client.createTable(this.#context(), table)));
    const answered = created.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    if (answered.length > 1) violation(`table ${name} was created twice`);
    const [schema] = answered;
    if (schema !== undefined && (schema.extra?.['made'] !== extra.made || schema.families[FAMILY]?.group !== 'other'))
      violation(`table ${name} was created as ${JSON.stringify(schema)}`);
    await client.deleteTable(this.#context(), name);
  }

  /** A family stays what it aggregates. */
  async #changeSum(): Promise<void> {
    const { client } = this.#parts;
    const update = (valueType: FamilySchema['valueType'], name = 'sum'): Promise<TableSchema> => {
      const family = { name, ...(valueType && { valueType }) };
      const change = { kind: 'update', family, fields: ['valueType'] } as const;
      return client.modifyFamilies(this.#context(), fullName(COUNTERS), [change]);
    };
    const { families } = await client.getTable(this.#context(), fullName(COUNTERS));
    await update(families['sum']?.valueType);
    await this.#refused('INVALID_ARGUMENT', update(undefined));
    await this.#refused('INVALID_ARGUMENT', update(families['sum']?.valueType, 'count'));
  }

  /** False: the call has failed otherwise, and may yet be carried out. */
  async #refused(codeName: string, call: Promise<unknown>): Promise<boolean> {
    const answer = await call.then(
      () => 'OK',
      (thrown: unknown) => {
        if (thrown instanceof BigtableError) return thrown.codeName;
        throw thrown;
      },
    );
    if (answer !== codeName && !FAILURES.has(answer))
      this.#parts.violation(`a change that is to be refused with ${codeName} is answered with ${answer}`);
    return answer === codeName;
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
