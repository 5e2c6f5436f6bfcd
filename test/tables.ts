/** Short words for the calls of a service, for tests. Names of tables are the last part alone. */
import assert from 'node:assert/strict';
import { BigtableError, type ByteString, type Code } from '../src/base/index.ts';
import { type Env, type RequestContext, requestContext } from '../src/env/index.ts';
import type { FamilySchema, Mutation } from '../src/model/index.ts';
import type { ReadRequest, Service } from '../src/service/index.ts';

export const TABLES = 'projects/p/instances/i/tables/';

export interface NewTestTable {
  readonly splits?: readonly ByteString[];
  /** Default: one named `f`. */
  readonly families?: readonly FamilySchema[];
  readonly deletionProtection?: boolean;
}

export class Tables {
  readonly env: Env;
  readonly service: Service;

  constructor(env: Env, service: Service) {
    this.env = env;
    this.service = service;
  }

  context(timeoutMs = Number.POSITIVE_INFINITY, signal?: AbortSignal): RequestContext {
    const deadlineMs = this.env.clock.monotonicMs() + timeoutMs;
    return requestContext({ budget: this.env.requestBudget, deadlineMs, ...(signal && { signal }) });
  }

  async create(table: string, options: NewTestTable = {}): Promise<void> {
    const { splits = [], families = [{ name: 'f' }], deletionProtection = false } = options;
    const name = TABLES + table;
    await this.service.createTable(this.context(), {
      name,
      families,
      splits,
      granularity: 'micros',
      deletionProtection,
    });
  }

  async delete(table: string): Promise<void> {
    await this.service.deleteTable(this.context(), TABLES + table);
  }

  mutate(table: string, row: ByteString, ...mutations: Mutation[]): Promise<void> {
    return this.service.mutateRow(this.context(), TABLES + table, { row, mutations });
  }

  /** Sets f:q at time 1. */
  set(table: string, row: ByteString, value: string, family = 'f'): Promise<void> {
    return this.mutate(table, row, setCell(value, family));
  }

  async rows(table: string, request: Omit<ReadRequest, 'table'> = {}): Promise<ByteString[]> {
    return (await this.read(table, request)).map(([row]) => row);
  }

  /** Each row with its values. */
  async read(table: string, request: Omit<ReadRequest, 'table'> = {}): Promise<[ByteString, ...string[]][]> {
    const rows: [ByteString, ...string[]][] = [];
    let values: string[] = [];
    for await (const { fragments } of this.service.readRows(this.context(), { table: TABLES + table, ...request })) {
      for (const { row, cells, last } of fragments) {
        values.push(...cells.map(({ value }) => Buffer.from(value).toString()));
        if (!last) continue;
        rows.push([row, ...values]);
        values = [];
      }
    }
    return rows;
  }
}

export function setCell(value: string, family = 'f', timestamp = 1): Mutation {
  return { kind: 'setCell', family, qualifier: 'q', timestamp, value: Buffer.from(value) };
}

export async function rejectsWith(
  code: Code,
  work: Promise<unknown> | (() => Promise<unknown>),
  message = /./,
): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof BigtableError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  });
}
