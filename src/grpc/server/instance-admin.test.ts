/** The calls of the instance admin API over a real connection: names of another form than the API has are refused. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { create, type DescMethod, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { Code } from '../../base/index.ts';
import { Client } from '../../client/index.ts';
import { type Env, LocalTransport, MemoryLockService } from '../../env/index.ts';
import { LIMITS } from '../../model/index.ts';
import { apiServer } from '../fixtures.ts';
import { testEnv } from '../../../test/raw-server.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { registerCloudApi } from './cloud-api.ts';

const admin = BigtableInstanceAdmin.method;

describe('instances and clusters', () => {
  const env = testEnv();
  let client: Client;
  let wire: Awaited<ReturnType<typeof apiServer>>;

  before(async () => {
    const seams = { lockService: new MemoryLockService(), transport: new LocalTransport(env.clock) };
    client = await Client.open({ env: { ...env, ...seams } as unknown as Env, limits: LIMITS.default });
    wire = await apiServer(env, (server) => void registerCloudApi(server, client, env));
  });

  after(async () => {
    client.close();
    await wire.close();
  });

  async function ask<I extends DescMethod['input']>(
    method: DescMethod & { readonly input: I },
    request: MessageInitShape<I>,
  ): Promise<{ code: number; message: string }> {
    const bytes = Buffer.from(toBinary(method.input, create(method.input, request)));
    return wire.call(`/${method.parent.typeName}/${method.name}`, [bytes]);
  }

  test('names of another form are refused with the form', async () => {
    const wrong = [
      '',
      'p',
      'projects',
      'projects/',
      'projects/p/',
      'projects//instances/i',
      'projects/p/instances/',
      'projects/p/instances/i/tables/t',
      'projects/p/instances/i/appprofiles/a',
      `projects/p/instances/${'i'.repeat(1001)}`,
      'x'.repeat(100_000),
    ];
    for (const name of wrong) {
      for (const outcome of [
        await ask(admin.createInstance, { parent: name, instance: {} }),
        await ask(admin.getInstance, { name }),
        await ask(admin.listInstances, { parent: name }),
        await ask(admin.updateInstance, { name }),
        await ask(admin.partialUpdateInstance, { instance: { name } }),
        await ask(admin.deleteInstance, { name }),
        await ask(admin.createCluster, { parent: name, cluster: {} }),
        await ask(admin.getCluster, { name }),
        await ask(admin.listClusters, { parent: name }),
        await ask(admin.updateCluster, { name }),
        await ask(admin.partialUpdateCluster, { cluster: { name } }),
        await ask(admin.deleteCluster, { name }),
        await ask(admin.createAppProfile, { parent: name, appProfile: {} }),
        await ask(admin.getAppProfile, { name }),
        await ask(admin.listAppProfiles, { parent: name }),
        await ask(admin.updateAppProfile, { appProfile: { name } }),
        await ask(admin.deleteAppProfile, { name }),
      ]) {
        assert.equal(outcome.code, Code.INVALID_ARGUMENT, name.slice(0, 50));
        assert.match(outcome.message, /^[a-z_.]*(name|parent) ".*"( \(\d+ bytes\))? must be projects\/PROJECT/);
        assert.ok(outcome.message.length < 500);
      }
    }
  });

  test('a message that is missing is named', async () => {
    for (const [outcome, field] of [
      [await ask(admin.createInstance, { parent: 'projects/p', instanceId: 'i' }), 'instance'],
      [await ask(admin.partialUpdateInstance, {}), 'instance'],
      [await ask(admin.createCluster, { parent: 'projects/p/instances/i', clusterId: 'c' }), 'cluster'],
      [await ask(admin.partialUpdateCluster, {}), 'cluster'],
      [await ask(admin.createAppProfile, { parent: 'projects/p/instances/i', appProfileId: 'a' }), 'app_profile'],
      [await ask(admin.updateAppProfile, {}), 'app_profile'],
    ] as const)
      assert.deepEqual([outcome.code, outcome.message], [Code.INVALID_ARGUMENT, `${field} must be set`]);
  });
});
