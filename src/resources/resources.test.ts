import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { losingAnswers } from '../../test/contracts/lost-answers.ts';
import { quickClock } from '../../test/simulated-time.ts';
import { rejectsWith } from '../../test/tables.ts';
import { BigtableError, Code, codeName, notFound } from '../base/index.ts';
import {
  ByteBudget,
  type LockService,
  ManualClock,
  MemoryLockService,
  requestContext,
  SeededRandom,
  silentLogger,
} from '../env/index.ts';
import type { TableSchema } from '../model/index.ts';
import type { KeptResource, ResourceKind } from '../service/index.ts';
import { policyPath } from './policy-file.ts';
import { encodeResource, resourcePath } from './resource-file.ts';
import { Resources } from './resources.ts';
import { ViewCache } from './view-cache.ts';

const context = requestContext({ budget: new ByteBudget(1000) });
const TABLE = 'projects/p/instances/i/tables/t';
const bytes = (text: string): Buffer => Buffer.from(text);

/** Clients over one lock service. `owners` has the parents that exist. */
function clients(count: number, seen: (lockService: LockService) => LockService = (lockService) => lockService) {
  const lockService = new MemoryLockService();
  const owners = new Map([[TABLE, '1']]);
  const clock = quickClock();
  const made = Array.from({ length: count }, (_, i) => {
    const ownerOf = async (_context: unknown, _kind: ResourceKind, parent: string): Promise<string> => {
      const owner = owners.get(parent);
      if (owner === undefined) throw notFound(parent);
      return owner;
    };
    return new Resources({
      lockService: seen(lockService),
      clock,
      random: new SeededRandom(i + 1),
      ownerOf,
      onChange: async () => {},
    });
  });
  return { lockService, owners, clients: made as [Resources, ...Resources[]] };
}

async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'OK';
  } catch (error) {
    return error instanceof BigtableError ? codeName(error.code) : String(error);
  }
}

interface Step {
  readonly what: 'create' | 'replace' | 'stale' | 'remove' | 'anew';
  readonly client: number;
  readonly id: string;
  readonly text: string;
}

describe('kept resources', () => {
  test('are what a map holds, at every client, with answers lost, and gone with their parent', async () => {
    const step: fc.Arbitrary<Step> = fc.record({
      what: fc.constantFrom('create', 'create', 'replace', 'stale', 'remove', 'anew'),
      client: fc.nat(2),
      id: fc.constantFrom('a', 'b', 'c'),
      text: fc.string({ maxLength: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.integer(), async (steps, seed) => {
        const chance = new SeededRandom(seed);
        const loses = (_call: number, method: string): boolean =>
          ['write', 'remove'].includes(method) && chance.float() < 0.3;
        const { owners, clients: all } = clients(3, (inner) => losingAnswers(inner, loses).service);
        const model = new Map<string, KeptResource>();
        let lastVersion = 0;
        for (const [i, { what, client, id, text }] of steps.entries()) {
          const resources = all[client]!;
          const name = `${TABLE}/schemaBundles/${id}`;
          const known = model.get(name);
          const version = known?.version ?? 0;
          if (what === 'create') {
            const call = resources.create(context, 'schemaBundles', name, bytes(text));
            assert.equal(await outcomeOf(call), known === undefined ? 'OK' : 'ALREADY_EXISTS');
            if (known === undefined) model.set(name, await call);
          } else if (what === 'replace' && known !== undefined) {
            const changed = { ...known, contents: bytes(text) };
            model.set(name, await resources.replace(context, 'schemaBundles', changed));
          } else if (what === 'stale' && known !== undefined) {
            const stale = { name, version: version - 1, contents: bytes(text) };
            assert.equal(await outcomeOf(resources.replace(context, 'schemaBundles', stale)), 'ABORTED');
            assert.equal(await outcomeOf(resources.remove(context, 'schemaBundles', name, version - 1)), 'ABORTED');
          } else if (what === 'remove' && known !== undefined) {
            const remove = (): Promise<void> => resources.remove(context, 'schemaBundles', name, version);
            assert.equal(await outcomeOf(remove()), 'OK');
            assert.equal(await outcomeOf(remove()), 'ABORTED', 'it is gone');
            model.delete(name);
          } else if (what === 'anew') {
            owners.set(TABLE, `${i + 2}`);
            model.clear();
          }
          const now = model.get(name);
          if (now !== undefined && now !== known) {
            assert.ok(now.version > lastVersion, 'a version is never used again');
            lastVersion = now.version;
          }
          const expected = [...model.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
          for (const each of all) assert.deepEqual(await each.list(context, 'schemaBundles', TABLE), expected);
          const found = all[0].find(context, 'schemaBundles', name);
          assert.equal(await outcomeOf(found), now === undefined ? 'NOT_FOUND' : 'OK');
          if (now !== undefined) assert.deepEqual(await found, now);
        }
      }),
      { numRuns: 100 },
    );
  });

  test('are created once, whoever creates them concurrently', async () => {
    const { clients: all } = clients(4);
    const name = `${TABLE}/authorizedViews/v`;
    const outcomes = await Promise.all(
      all.map((each, i) => outcomeOf(each.create(context, 'authorizedViews', name, bytes(`${i}`)))),
    );
    assert.deepEqual(outcomes.sort(), ['ALREADY_EXISTS', 'ALREADY_EXISTS', 'ALREADY_EXISTS', 'OK']);
  });

  test('keep their policy where their removal is refused, and lose it with them', async () => {
    const { clients: made, lockService } = clients(1);
    const name = `${TABLE}/authorizedViews/v`;
    const { version } = await made[0].create(context, 'authorizedViews', name, bytes('1'));
    const now = await made[0].replace(context, 'authorizedViews', { name, contents: bytes('2'), version });
    await lockService.write(policyPath(name), bytes('a policy'), { version: 0 });
    await rejectsWith(Code.ABORTED, made[0].remove(context, 'authorizedViews', name, version));
    assert.ok(await lockService.read(policyPath(name)));
    await made[0].remove(context, 'authorizedViews', name, now.version);
    assert.equal(await lockService.read(policyPath(name)), undefined);
  });

  test('have limits of number and size', async () => {
    const {
      owners,
      clients: [a],
    } = clients(1);
    const create = (id: string, contents = bytes('x')): Promise<string> =>
      outcomeOf(a.create(context, 'schemaBundles', `${TABLE}/schemaBundles/${id}`, contents));
    assert.equal(await create('big', Buffer.alloc(512 * 1024 + 1)), 'INVALID_ARGUMENT');
    assert.equal(await create('b0', Buffer.alloc(512 * 1024)), 'OK');
    for (let i = 1; i < 10; i++) assert.equal(await create(`b${i}`), 'OK');
    assert.equal(await create('more'), 'RESOURCE_EXHAUSTED');
    owners.set(TABLE, '2');
    assert.equal(await create('more'), 'OK', 'those of an earlier table do not count');
    owners.delete(TABLE);
    assert.equal(await create('none'), 'NOT_FOUND');
  });

  test('of a parent are removed with it, of all kinds, and no others', async () => {
    const {
      owners,
      lockService,
      clients: [a],
    } = clients(1);
    const other = `${TABLE}2`;
    owners.set(other, '2');
    for (const parent of [TABLE, other]) {
      await a.create(context, 'authorizedViews', `${parent}/authorizedViews/v`, bytes('x'));
      await a.create(context, 'schemaBundles', `${parent}/schemaBundles/b`, bytes('x'));
    }
    await a.removeAllOf(context, TABLE);
    const left = await lockService.list('resources/');
    assert.deepEqual(
      left.map(({ path }) => path),
      [`resources/authorizedViews/${other}/authorizedViews/v`, `resources/schemaBundles/${other}/schemaBundles/b`],
    );
  });
});

describe('the authorized views that a process knows', () => {
  const NAME = `${TABLE}/authorizedViews/v`;
  const fileOf = (owner: string): Buffer =>
    encodeResource({ name: NAME, owner, write: 'w', contents: bytes(`of ${owner}`) });

  function started(tables: Map<string, string>) {
    const lockService = new MemoryLockService();
    const schemaOf = (name: string): TableSchema | undefined => {
      const id = tables.get(name);
      return id === undefined
        ? undefined
        : { name, id, granularity: 'millis', families: {}, deletionProtection: false };
    };
    return {
      lockService,
      cache: new ViewCache({ lockService, clock: new ManualClock(), logger: silentLogger, schemaOf }),
    };
  }

  test('are those of the tables that exist, not of earlier ones of the same name', async () => {
    const tables = new Map([[TABLE, '1']]);
    const { lockService, cache } = started(tables);
    await lockService.write(resourcePath('authorizedViews', NAME), fileOf('1'));
    assert.equal(cache.find(NAME), undefined, 'nothing is known before the start');
    await cache.start();
    const found = cache.find(NAME);
    assert.equal(String(found?.contents), 'of 1');
    assert.equal(cache.find(NAME), found, 'the same object while nothing changes');
    tables.set(TABLE, '2');
    assert.equal(cache.find(NAME), undefined);
    tables.delete(TABLE);
    assert.equal(cache.find(NAME), undefined);
    assert.equal(cache.find('no name'), undefined);
    cache.stop();
  });

  test('do not contain one whose file is damaged, until it is written again', async () => {
    const { lockService, cache } = started(new Map([[TABLE, '1']]));
    const path = resourcePath('authorizedViews', NAME);
    await lockService.write(path, bytes('damaged'));
    await cache.start();
    assert.equal(cache.find(NAME), undefined);
    await lockService.write(path, fileOf('1'));
    await turn();
    assert.equal(String(cache.find(NAME)?.contents), 'of 1');
    await lockService.write(path, bytes('damaged'));
    await turn();
    assert.equal(cache.find(NAME), undefined, 'what was known is not true any more');
    cache.stop();
  });

  test('are followed again after a read of a change has failed', async () => {
    const { lockService } = started(new Map());
    let fails = false;
    const failing = new Proxy(lockService, {
      get: (target, method: keyof LockService) => {
        const value = target[method] as unknown;
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          if ((method === 'read' || method === 'list') && fails)
            return Promise.reject(new BigtableError(Code.UNAVAILABLE, 'no answer'));
          return value.apply(target, args) as unknown;
        };
      },
    });
    const clock = new ManualClock();
    const schemaOf = (name: string): TableSchema => ({
      name,
      id: '1',
      granularity: 'millis',
      families: {},
      deletionProtection: false,
    });
    const cache = new ViewCache({ lockService: failing, clock, logger: silentLogger, schemaOf });
    await cache.start();
    fails = true;
    await lockService.write(resourcePath('authorizedViews', NAME), fileOf('1'));
    await turn();
    assert.equal(cache.find(NAME), undefined);
    fails = false;
    for (let second = 0; second < 10 && cache.find(NAME) === undefined; second++) {
      clock.advance(1000);
      await turn();
    }
    assert.equal(String(cache.find(NAME)?.contents), 'of 1');
    cache.stop();
  });
});
