/** Instances by the library: what is asked and answered, in this process, through a server, and for reading only. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { DOORS } from '../../test/library/doors.ts';
import { Code } from '../base/index.ts';
import { type Database, type Instance, open } from './index.ts';

const scaling = { minNodes: 2, maxNodes: 6, cpuPercent: 60 };
const DEFAULT_PROFILE = {
  id: 'default',
  description: '',
  routing: { kind: 'single', cluster: 'edubba', allowsTransactions: true },
  isolation: { kind: 'standard', priority: 'high' },
};

async function namesOf(database: Database, project?: string): Promise<string[]> {
  return (await database.listInstances({ project })).map(({ name }) => name);
}

function isFrozen(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return Object.isFrozen(value) && Object.values(value).every(isFrozen);
}

for (const door of DOORS) {
  describe(`instances: ${door.name}`, () => {
    test('are created with what they need, and shown as they are', async () => {
      await using database = await door.open();
      const { createdMicros, ...made } = await database.createInstance('games');
      assert.ok(createdMicros! > 1.7e15);
      const cluster = { id: 'edubba', zone: 'local', nodes: 1, storage: 'ssd' };
      assert.deepEqual(made, {
        name: 'games',
        displayName: 'games',
        type: 'production',
        edition: 'enterprise',
        labels: {},
        clusters: [cluster],
        appProfiles: [DEFAULT_PROFILE],
      });
      // that which no one has created
      const { createdMicros: _, ...local } = await database.getInstance('local');
      assert.deepEqual(local, { ...made, name: 'local', displayName: 'local' });
      assert.ok(!('createdMicros' in (await database.getInstance('local'))));
    });

    test('have the requested clusters, labels and words, and are frozen', async () => {
      await using database = await door.open();
      const made = await database.createInstance('projects/other/instances/big', {
        displayName: 'Big – größer',
        type: 'development',
        edition: 'enterprise-plus',
        labels: { team: 'a' },
        clusters: {
          east: { zone: 'e-1', autoscaling: scaling, scalingFactor: 2, storage: 'hdd' },
          central: { nodes: 4, autoscaling: { ...scaling, storageGib: 2560 } },
        },
      });
      assert.equal(made.name, 'projects/other/instances/big');
      assert.deepEqual(
        [made.displayName, made.type, made.edition, made.labels],
        ['Big – größer', 'development', 'enterprise-plus', { team: 'a' }],
      );
      assert.deepEqual(made.clusters, [
        { id: 'central', zone: 'local', nodes: 4, autoscaling: { ...scaling, storageGib: 2560 }, storage: 'ssd' },
        {
          id: 'east',
          zone: 'e-1',
          nodes: 2,
          autoscaling: { ...scaling, storageGib: 0 },
          scalingFactor: 2,
          storage: 'hdd',
        },
      ]);
      // with several clusters no transactions
      assert.deepEqual(made.appProfiles[0]?.routing, { kind: 'any', clusters: [], hasRowAffinity: false });
      assert.deepEqual(await database.getInstance('projects/other/instances/big'), made);
      assert.deepEqual(await database.listInstances({ project: 'other' }), [made]);
      assert.ok(isFrozen(made));
      assert.ok(isFrozen(await database.createCluster('local', 'c', { autoscaling: scaling })));
    });

    test('are given other names and labels, and keep what is not given', async () => {
      await using database = await door.open();
      const made = await database.createInstance('games', { type: 'development', labels: { team: 'a', old: 'x' } });
      const named = await database.updateInstance('games', { displayName: 'All games', labels: { team: 'b' } });
      assert.deepEqual(named, { ...made, displayName: 'All games', labels: { team: 'b' } });
      assert.ok(isFrozen(named));
      const grown = await database.updateInstance('games', { type: 'production', edition: 'enterprise-plus' });
      assert.deepEqual(grown, { ...named, type: 'production', edition: 'enterprise-plus' });
      assert.deepEqual(await database.updateInstance('games', { labels: {} }), { ...grown, labels: {} });
      assert.deepEqual(await database.getInstance('games'), { ...grown, labels: {} });
      assert.equal((await database.updateInstance('local', { displayName: 'Mine' })).displayName, 'Mine');
    });

    test('of the own project are listed by id, those of another by full name', async () => {
      await using database = await door.open();
      await database.createInstance('games');
      await database.createInstance('projects/local/instances/ads');
      await database.createTable('projects/other/instances/came/tables/t');
      assert.deepEqual(await namesOf(database), ['ads', 'games', 'local']);
      assert.deepEqual(await namesOf(database, 'other'), ['projects/other/instances/came']);
      assert.deepEqual(await namesOf(database, 'none'), ['projects/none/instances/local']);
    });

    test('say in the words of their caller what is wrong, and change nothing then', async () => {
      await using database = await door.open();
      await database.createInstance('games', { clusters: { a: {}, b: {} } });
      await database.createAppProfile('games', 'p', { routing: { kind: 'single', cluster: 'a' } });
      await database.createTable('projects/local/instances/games/tables/t');
      const before = await database.getInstance('games');
      const any = { routing: { kind: 'any' } } as const;
      const bad = <T>(options: object): T => options as T;
      for (const [call, code, message] of [
        [() => database.createInstance('games'), Code.ALREADY_EXISTS, /^instance games exists already$/],
        [() => database.createInstance('local'), Code.ALREADY_EXISTS, /^instance local exists already$/],
        [() => database.getInstance('none'), Code.NOT_FOUND, /^instance none does not exist/],
        [() => database.deleteInstance('none'), Code.NOT_FOUND, /^instance none does not exist/],
        [() => database.deleteInstance('local'), Code.FAILED_PRECONDITION, /^instance local is the default one/],
        [() => database.createInstance(''), Code.INVALID_ARGUMENT, /an instance name must not be empty/],
        [() => database.createInstance('a/b'), Code.INVALID_ARGUMENT, /"a\/b" must be projects\/PROJECT\//],
        [() => database.createInstance('Games'), Code.INVALID_ARGUMENT, /instance id "Games" must be 2 to 33/],
        [() => database.createInstance('x1', { displayName: '' }), Code.INVALID_ARGUMENT, /must not be empty/],
        [() => database.createInstance('x1', { clusters: {} }), Code.INVALID_ARGUMENT, /at least one cluster/],
        [() => database.createInstance('x1', { labels: { A: 'x' } }), Code.INVALID_ARGUMENT, /label "A"/],
        [
          () => database.createInstance('x1', bad({ display: 'x' })),
          Code.INVALID_ARGUMENT,
          /createInstance: unknown option "display" \(did you mean displayName\?\); there are .*labels/,
        ],
        [
          () => database.createInstance('x1', bad({ clusters: { c: { nods: 1 } } })),
          Code.INVALID_ARGUMENT,
          /cluster "c": unknown option "nods" \(did you mean nodes\?\)/,
        ],
        [() => database.createInstance('x1', bad({ clusters: ['c'] })), Code.INVALID_ARGUMENT, /by its id/],
        [() => database.createInstance('x1', bad({ type: 'test' })), Code.INVALID_ARGUMENT, /type must be one of prod/],
        [
          () => database.updateInstance('games', {}),
          Code.INVALID_ARGUMENT,
          /displayName, type, edition or labels must/,
        ],
        [() => database.updateInstance('games', { displayName: '' }), Code.INVALID_ARGUMENT, /must not be empty/],
        [() => database.updateInstance('games', bad({ label: {} })), Code.INVALID_ARGUMENT, /did you mean labels\?/],
        [() => database.updateInstance('none', { labels: {} }), Code.NOT_FOUND, /^instance none does not exist/],
        [() => database.listInstances({ project: 'a/b' }), Code.INVALID_ARGUMENT, /project must be text without/],
        [
          () => database.createCluster('games', 'a'),
          Code.ALREADY_EXISTS,
          /^cluster a of instance games exists already$/,
        ],
        [() => database.createCluster('none', 'a'), Code.NOT_FOUND, /^instance none does not exist/],
        [() => database.createCluster('games', 'a/b'), Code.INVALID_ARGUMENT, /the id of a cluster must be text/],
        [() => database.createCluster('games', 'c', { nodes: 0 }), Code.INVALID_ARGUMENT, /nodes of cluster c must be/],
        [() => database.createCluster('games', 'c', { nodes: 1.5 }), Code.INVALID_ARGUMENT, /nodes of cluster c/],
        [
          () => database.createCluster('games', 'c', { nodes: 3, scalingFactor: 2 }),
          Code.INVALID_ARGUMENT,
          /a multiple of the node scaling factor 2, not 3/,
        ],
        [
          () => database.createCluster('games', 'c', { autoscaling: { ...scaling, cpuPercent: 50.5 } }),
          Code.INVALID_ARGUMENT,
          /CPU target of cluster c must be 10 to 80/,
        ],
        [
          () => database.createCluster('games', 'c', { autoscaling: { ...scaling, storageGib: 8192 } }),
          Code.INVALID_ARGUMENT,
          /storage target of cluster c must be 2560 to 5120 GiB a node \(ssd\)/,
        ],
        [() => database.updateCluster('games', 'c', { nodes: 2 }), Code.NOT_FOUND, /^cluster c of instance games does/],
        [() => database.updateCluster('games', 'a', {}), Code.INVALID_ARGUMENT, /nodes or autoscaling must be given/],
        [
          () => database.updateCluster('games', 'a', { autoscaling: { ...scaling, storageGib: 8192 } }),
          Code.INVALID_ARGUMENT,
          /storage target of cluster a must be 2560 to 5120 GiB a node \(ssd\), or 0/,
        ],
        [() => database.deleteCluster('games', 'c'), Code.NOT_FOUND, /^cluster c of instance games does not exist$/],
        [() => database.deleteCluster('games', 'a'), Code.FAILED_PRECONDITION, /used by app profile p/],
        [() => database.deleteCluster('local', 'edubba'), Code.FAILED_PRECONDITION, /is its last one/],
        [() => database.deleteCluster('games', 'b', bad({ force: true })), Code.INVALID_ARGUMENT, /option "force"/],
        [
          () => database.createAppProfile('games', 'p', any),
          Code.ALREADY_EXISTS,
          /^app profile p of instance games exists already$/,
        ],
        [() => database.createAppProfile('games', 'q', bad({})), Code.INVALID_ARGUMENT, /routing must be given/],
        [() => database.createAppProfile('games', 'q!', any), Code.INVALID_ARGUMENT, /app profile id "q!"/],
        [
          () => database.createAppProfile('games', 'q', { routing: { kind: 'single', cluster: 'z' } }),
          Code.FAILED_PRECONDITION,
          /names cluster "z", which instance games does not have/,
        ],
        [
          () => database.createAppProfile('games', 'q', bad({ routing: { kind: 'both' } })),
          Code.INVALID_ARGUMENT,
          /routing: kind must be one of single, any, not string "both"/,
        ],
        [
          () => database.createAppProfile('games', 'q', bad({ routing: { kind: 'any', cluster: 'a' } })),
          Code.INVALID_ARGUMENT,
          /routing: unknown option "cluster" \(did you mean clusters\?\)/,
        ],
        [
          () => database.createAppProfile('games', 'q', { ...any, isolation: { kind: 'data-boost' } }),
          Code.INVALID_ARGUMENT,
          /Data Boost needs routing to a single cluster/,
        ],
        [
          () => database.updateAppProfile('games', 'default', { isolation: { kind: 'data-boost' } }),
          Code.INVALID_ARGUMENT,
          /Data Boost needs/,
        ],
        [() => database.updateAppProfile('games', 'p', {}), Code.INVALID_ARGUMENT, /must be given/],
        [
          () => database.updateAppProfile('games', 'q', { description: 'x' }),
          Code.NOT_FOUND,
          /^app profile q of instance games does not exist$/,
        ],
        [
          () => database.deleteAppProfile('games', 'default'),
          Code.FAILED_PRECONDITION,
          /^app profile default of instance games is that of all calls that name none/,
        ],
        [() => database.createInstance('x1', { timeoutMs: 0 }), Code.DEADLINE_EXCEEDED, /timeoutMs/],
        [() => database.getInstance('games', { timeoutMs: 0 }), Code.DEADLINE_EXCEEDED, /timeoutMs/],
        [() => database.deleteCluster('games', 'b', { signal: AbortSignal.abort() }), Code.CANCELLED, /./],
      ] as const)
        await assert.rejects(call(), { code, message });
      assert.deepEqual(await namesOf(database), ['games', 'local']);
      assert.deepEqual(await database.getInstance('games'), before);
    });
  });
}

test('a database that is open for reading only shows its instances, and changes none', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-instances-'));
  try {
    const writer = await open(directory);
    const made: Instance = await writer.createInstance('games');
    await writer.close();
    await using reader = await open(directory, { readOnly: true });
    assert.deepEqual(await reader.getInstance('games'), made);
    assert.deepEqual(await namesOf(reader), ['games', 'local']);
    for (const call of [
      () => reader.createInstance('more'),
      () => reader.deleteInstance('games'),
      () => reader.createCluster('games', 'c'),
      () => reader.updateAppProfile('games', 'default', { description: 'x' }),
    ])
      await assert.rejects(call(), { code: Code.FAILED_PRECONDITION, message: /read-only/ });
  } finally {
    await rm(directory, { recursive: true });
  }
});
