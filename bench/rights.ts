/**
 * What the check of rights costs a call, next to the same call without a guard: a service that does nothing, called
 * directly, through a guard without policies, and through one with policies of 1,000 tables. The best of five turns.
 *
 *   npm run bench -- rights [--calls=1000000]
 */
import { guardOf } from '../src/access/index.ts';
import { ByteBudget, requestContext, silentLogger } from '../src/env/index.ts';
import type { Policy } from '../src/model/index.ts';
import { systemClock } from '../src/platform/index.ts';
import type { PolicySource, Service } from '../src/service/index.ts';

const CALLS = Number(/--calls=(\d+)/.exec(process.argv.join(' '))?.[1] ?? 1_000_000);
const TABLES = 1000;
const TURNS = 5;

const tableName = (i: number): string => `projects/p/instances/i/tables/t${i}`;
const NAMES = Array.from({ length: TABLES }, (_, i) => tableName(i));

function sourceOf(policies: ReadonlyMap<string, Policy>): PolicySource {
  return {
    start: async () => {},
    stop: () => {},
    isCurrent: true,
    isEmpty: policies.size === 0,
    changes: 0,
    find: (resource) => policies.get(resource),
    ofFamilies: () => new Map(),
    schemaOf: () => undefined,
  };
}

const done = Promise.resolve();
function serviceWith(policySource: PolicySource): Service {
  return { policySource, mutateRow: () => done } as Partial<Service> as Service;
}

const policy: Policy = { bindings: [{ role: 'roles/bigtable.user', members: ['token:a', 'token:b'] }] };
const open = serviceWith(sourceOf(new Map()));
const closed = serviceWith(sourceOf(new Map(NAMES.map((name) => [name, policy]))));
const parts = { clock: systemClock, logger: silentLogger };
const callers: Readonly<Record<string, Pick<Service, 'mutateRow'>>> = {
  'without a guard': open,
  'no policies': guardOf({ ...parts, service: open })!,
  'policies of 1,000 tables': guardOf({ ...parts, service: closed })!,
};

const context = requestContext({ budget: new ByteBudget(1000), principal: 'token:b' });
const entry = { row: 'r', mutations: [] };
const figures: Record<string, number> = {};
for (const [name, service] of Object.entries(callers)) {
  let bestNs = Number.POSITIVE_INFINITY;
  for (let turn = 0; turn < TURNS; turn++) {
    const start = process.hrtime.bigint();
    for (let i = 0; i < CALLS; i++) void service.mutateRow(context, NAMES[i % TABLES]!, entry);
    bestNs = Math.min(bestNs, Number(process.hrtime.bigint() - start) / CALLS);
    await done;
  }
  figures[name] = Math.round(bestNs);
  console.log(`${name.padEnd(28)} ${bestNs.toFixed(0).padStart(6)} ns a call`);
}
console.log(JSON.stringify(figures));
