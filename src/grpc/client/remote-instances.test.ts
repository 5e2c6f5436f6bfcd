/** Instances of a server that is not Edubba's: pages, keys of a key management service, changes that go on. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { testEnv } from '../../../test/raw-server.ts';
import { Code } from '../../base/index.ts';
import { systemClock } from '../../platform/index.ts';
import type { InstanceService } from '../../service/index.ts';
import { apiServer, testContext } from '../fixtures.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { MethodTable } from '../server/method-table.ts';
import { overWire, type RemoteService } from './remote-service.ts';

const admin = BigtableInstanceAdmin.method;
const A = 'projects/p/instances/a';
const B = 'projects/p/instances/b';
const cluster = (instance: string, id: string) => ({
  name: `${instance}/clusters/${id}`,
  location: 'projects/p/locations/z',
  serveNodes: 3,
  encryptionConfig: { kmsKeyName: 'projects/p/locations/z/keyRings/r/cryptoKeys/k' },
});
const profile = (instance: string, id: string) => ({
  name: `${instance}/appProfiles/${id}`,
  routingPolicy: { case: 'multiClusterRoutingUseAny', value: {} } as const,
});

/** The page that a token names, of pages of one item. */
function pageOf<T>(items: readonly T[], pageToken: string): readonly [page: T[], nextPageToken: string] {
  const at = Number(pageToken);
  return [items.slice(at, at + 1), at + 1 < items.length ? String(at + 1) : ''];
}

describe('instances of another server', () => {
  const env = testEnv();
  const context = testContext(env);
  let wire: Awaited<ReturnType<typeof apiServer>>;
  let remote: RemoteService;
  let instances: InstanceService;
  /** How the next operation is answered. */
  let operation: object;

  before(async () => {
    wire = await apiServer(env, (server) => {
      const methods = new MethodTable(server);
      methods.unary(admin.getInstance, async (_, { name }) => ({ name, displayName: 'x' }));
      methods.unary(admin.listInstances, async (_, { pageToken }) => {
        // the last one is deleted before its clusters are listed
        const [page, nextPageToken] = pageOf([B, A, 'projects/p/instances/gone'], pageToken);
        return { instances: page.map((name) => ({ name, displayName: 'x' })), nextPageToken };
      });
      methods.unary(admin.listClusters, async (_, { pageToken }) => {
        const [clusters, nextPageToken] = pageOf([cluster(A, 'c2'), cluster(B, 'c'), cluster(A, 'c1')], pageToken);
        return { clusters, nextPageToken };
      });
      methods.unary(admin.listAppProfiles, async (_, { pageToken }) => {
        const [appProfiles, nextPageToken] = pageOf([profile(A, 'q'), profile(A, 'p'), profile(B, 'r')], pageToken);
        return { appProfiles, nextPageToken };
      });
      methods.unary(admin.createCluster, async () => operation);
      methods.registerUnimplemented(BigtableInstanceAdmin);
    });
    remote = overWire({ address: `127.0.0.1:${wire.port}`, clock: systemClock, random: env.random });
    instances = remote.instances!;
  });
  after(async () => {
    remote.close();
    await wire.close();
  });

  test('are put together from pages; one that is deleted meanwhile is left out', async () => {
    const all = await instances.listInstances(context, 'p');
    const idsOf = (parts: readonly { readonly id: string }[]) => parts.map(({ id }) => id);
    assert.deepEqual(
      all.map(({ name, clusters, appProfiles }) => [name, idsOf(clusters), idsOf(appProfiles)]),
      [
        [A, ['c1', 'c2'], ['p', 'q']],
        [B, ['c'], ['r']],
      ],
    );
    assert.deepEqual(await instances.getInstance(context, A), all[0]);
  });

  test('a change that fails in its operation, or goes on after the answer, is no success', async () => {
    const create = () =>
      instances.changeInstance(context, A, {
        kind: 'createCluster',
        cluster: { id: 'c1', zone: 'z', nodes: 1, autoscaling: undefined, scalingFactor: undefined, storage: 'ssd' },
      });
    operation = {
      done: true,
      result: { case: 'error', value: { code: Code.RESOURCE_EXHAUSTED, message: 'no nodes' } },
    };
    await assert.rejects(create(), { code: Code.RESOURCE_EXHAUSTED, message: /no nodes/ });
    operation = { done: false };
    await assert.rejects(create(), { code: Code.UNAVAILABLE, message: /has not finished changing .*instances\/a/ });
    operation = { done: true };
    assert.equal((await create()).name, A);
    await assert.rejects(instances.deleteInstance(context, A), { code: Code.UNIMPLEMENTED });
  });
});
