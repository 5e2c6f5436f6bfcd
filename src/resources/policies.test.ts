import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { losingAnswers } from '../../test/contracts/lost-answers.ts';
import { quickClock } from '../../test/simulated-time.ts';
import { BigtableError, codeName } from '../base/index.ts';
import {
  ByteBudget,
  type LockService,
  ManualClock,
  MemoryLockService,
  requestContext,
  SeededRandom,
  silentLogger,
} from '../env/index.ts';
import type { Policy, TableSchema } from '../model/index.ts';
import { Policies } from './policies.ts';
import { ownerText, PolicyCache } from './policy-cache.ts';
import { encodePolicy, policyPath } from './policy-file.ts';

const context = requestContext({ budget: new ByteBudget(1000) });
const TABLE = 'projects/p/instances/i/tables/t';
const FAMILY = `${TABLE}/columnFamilies/f`;

const policy = (...members: string[]): Policy => ({
  bindings: members.length === 0 ? [] : [{ role: 'roles/bigtable.reader', members }],
});
const schema = (id: string, generation: number): TableSchema => ({
  name: TABLE,
  id,
  granularity: 'millis',
  families: { f: { name: 'f', generation } },
  deletionProtection: false,
});

async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'OK';
  } catch (error) {
    return error instanceof BigtableError ? codeName(error.code) : String(error);
  }
}

/** Clients over one lock service, which know the same table. */
function clients(count: number, seen: (lockService: LockService) => LockService = (lockService) => lockService) {
  const lockService = new MemoryLockService();
  const table = { now: schema('00000010', 0) };
  const made = Array.from(
    { length: count },
    (_, i) =>
      new Policies({
        lockService: seen(lockService),
        clock: quickClock(),
        random: new SeededRandom(i + 1),
        ownerOf: async (_context, { kind }) =>
          kind === 'instance'
            ? ''
            : ownerText(table.now, kind === 'columnFamily' ? table.now.families['f'] : undefined),
        onChange: async () => {},
      }),
  );
  return { lockService, table, clients: made as [Policies, ...Policies[]] };
}

describe('policies', () => {
  test('are what a map holds, at every client, with answers lost, and gone with their table or family', async () => {
    const step = fc.record({
      what: fc.constantFrom('set', 'set', 'guarded', 'stale', 'table', 'family'),
      client: fc.nat(2),
      resource: fc.constantFrom(TABLE, FAMILY, 'projects/p/instances/i'),
      members: fc.uniqueArray(fc.constantFrom('token:a', 'token:b', 'allUsers'), { maxLength: 2 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.integer(), async (steps, seed) => {
        const chance = new SeededRandom(seed);
        const loses = (_call: number, method: string): boolean =>
          ['write', 'remove'].includes(method) && chance.float() < 0.3;
        const { table, clients: all } = clients(3, (inner) => losingAnswers(inner, loses).service);
        const model = new Map<string, { readonly policy: Policy; readonly version: number }>();
        for (const { what, client, resource, members } of steps) {
          const policies = all[client]!;
          const version = model.get(resource)?.version ?? 0;
          if (what === 'set' || what === 'guarded') {
            const guard = what === 'guarded' ? version : undefined;
            const kept = await policies.setPolicy(context, resource, policy(...members), guard);
            assert.ok(kept.version > version || members.length === 0);
            model.set(resource, { policy: policy(...members), version: kept.version });
          } else if (what === 'stale') {
            const stale = policies.setPolicy(context, resource, policy(...members), version + 1);
            assert.equal(await outcomeOf(stale), 'ABORTED');
          } else {
            const { id, families } = table.now;
            const generation = families['f']!.generation ?? 0;
            table.now =
              what === 'family'
                ? schema(id, generation + 1)
                : schema(`${id.slice(0, -1)}${Number(id.at(-1)) + 1}`.slice(0, 8), 0);
            if (what === 'table' && table.now.id <= id) return;
            model.delete(FAMILY);
            if (what === 'table') model.delete(TABLE);
          }
          for (const each of all)
            for (const name of [TABLE, FAMILY, 'projects/p/instances/i']) {
              const expected = model.get(name) ?? { policy: policy(), version: 0 };
              assert.deepEqual(await each.getPolicy(context, name), { ...expected.policy, version: expected.version });
            }
        }
      }),
      { numRuns: 100 },
    );
  });

  test('changed by many clients concurrently, each from what it has read, lose no change', async () => {
    const { clients: all } = clients(4);
    const add = async (policies: Policies, member: string): Promise<void> => {
      for (;;) {
        const { bindings, version } = await policies.getPolicy(context, TABLE);
        const members = bindings.flatMap((binding) => binding.members);
        if ((await outcomeOf(policies.setPolicy(context, TABLE, policy(...members, member), version))) === 'OK') return;
      }
    };
    await Promise.all(all.map((policies, i) => add(policies, `token:${i}`)));
    const { bindings } = await all[0].getPolicy(context, TABLE);
    assert.deepEqual([...bindings[0]!.members].sort(), ['token:0', 'token:1', 'token:2', 'token:3']);
  });

  test('have limits of number and size, and names of resources alone', async () => {
    const {
      lockService,
      clients: [a],
    } = clients(1);
    const set = (resource: string, given: Policy): Promise<string> => outcomeOf(a.setPolicy(context, resource, given));
    const long = Array.from({ length: 100 }, (_, i) => `token:${'x'.repeat(500)}${i}`);
    assert.equal(await set(TABLE, policy(...long)), 'INVALID_ARGUMENT');
    const many = Array.from({ length: 1501 }, (_, i) => `token:${i}`);
    assert.equal(await set(TABLE, policy(...many)), 'INVALID_ARGUMENT');
    assert.equal(await set(TABLE, { bindings: [{ role: 'roles/bigtable.reader', members: [] }] }), 'INVALID_ARGUMENT');
    for (const member of ['', 'a', 'token:', 'token:a\nb', ':a', `token:${'x'.repeat(5000)}`])
      assert.equal(await set(TABLE, policy(member)), 'INVALID_ARGUMENT', member);
    for (const name of ['', 'projects/p', `${FAMILY}/x`, 'projects/p/instances/i/logicalViews/v/columnFamilies/f'])
      assert.equal(await set(name, policy('token:a')), 'INVALID_ARGUMENT', name);
    for (let i = 0; i < 2000; i++)
      await lockService.write(policyPath(`x${i}`), encodePolicy({ owner: '', bindings: [], write: 'w' }));
    assert.equal(await set(TABLE, policy('token:a')), 'RESOURCE_EXHAUSTED');
  });
});

describe('the policies that a process knows', () => {
  async function started(now: TableSchema | undefined) {
    const lockService = new MemoryLockService();
    const table = { now };
    const cache = new PolicyCache({
      lockService,
      clock: new ManualClock(),
      logger: silentLogger,
      schemaOf: (name) => (name === TABLE ? table.now : undefined),
      isCurrent: () => true,
    });
    await cache.start();
    const put = async (resource: string, owner: string): Promise<void> => {
      await lockService.write(policyPath(resource), encodePolicy({ owner, ...policy('token:a'), write: 'w' }));
      await cache.changed(policyPath(resource));
    };
    const isKnown = (resource: string): boolean => cache.find(resource) !== undefined;
    return { table, cache, put, isKnown };
  }

  test('give nothing where their files cannot be read, and can be set again', async () => {
    const {
      lockService,
      clients: [a],
    } = clients(1);
    const cache = new PolicyCache({
      lockService,
      clock: new ManualClock(),
      logger: silentLogger,
      schemaOf: () => schema('00000010', 0),
      isCurrent: () => true,
    });
    await lockService.write(policyPath(TABLE), Buffer.from('{"format":1,"requires":0,"owner":1}'));
    await cache.start();
    assert.deepEqual(cache.find(TABLE)?.bindings, []);
    assert.ok(!cache.isEmpty);
    assert.equal(await outcomeOf(a.getPolicy(context, TABLE)), 'DATA_LOSS');
    await a.setPolicy(context, TABLE, policy('token:a'));
    assert.deepEqual((await a.getPolicy(context, TABLE)).bindings, policy('token:a').bindings);
    await cache.changed(policyPath(TABLE));
    assert.deepEqual(cache.find(TABLE)?.bindings, policy('token:a').bindings);
    cache.stop();
  });

  test('are in force unless their table or family is known to be a later one', async () => {
    const { table, cache, put, isKnown } = await started(undefined);
    const before = cache.changes;
    await put(TABLE, '00000010');
    await put(FAMILY, '00000010/1');
    assert.ok(cache.changes > before && !cache.isEmpty);
    assert.ok(isKnown(TABLE) && isKnown(FAMILY), 'the table is not known yet');
    for (const [id, generation, expected] of [
      ['00000010', 1, [true, true]],
      ['0000000f', 0, [true, true]],
      ['00000010', 0, [true, true]],
      ['00000010', 2, [true, false]],
      ['00000011', 1, [false, false]],
    ] as const) {
      table.now = schema(id, generation);
      assert.deepEqual([isKnown(TABLE), isKnown(FAMILY)], expected, `${id} ${generation}`);
      assert.deepEqual([...cache.ofFamilies(TABLE).keys()], expected[1] ? ['f'] : []);
    }
    cache.stop();
  });
});
