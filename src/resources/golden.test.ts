import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { goldenFile } from '../../test/golden/golden-file.ts';
import { Code } from '../base/index.ts';
import { type Instance, uncreatedInstance } from '../model/index.ts';
import { decodeInstance, encodeInstance, instancePath } from './instance-file.ts';
import { decodePolicy, encodePolicy, policyPath } from './policy-file.ts';
import { decodeResource, encodeResource, resourcePath } from './resource-file.ts';

const INSTANCE: Instance = {
  ...uncreatedInstance('projects/p/instances/größe'),
  labels: { team: 'a', constructor: 'b' },
  createdMicros: 1_704_067_200_000_000,
  clusters: [
    { id: 'a', zone: 'z', nodes: 3, autoscaling: undefined, scalingFactor: undefined, storage: 'ssd', revision: 1 },
    {
      id: 'b',
      zone: 'y',
      nodes: 4,
      autoscaling: { minNodes: 2, maxNodes: 8, cpuPercent: 60, storageGib: 0 },
      scalingFactor: 2,
      storage: 'hdd',
      revision: 2,
    },
  ],
  appProfiles: [
    {
      id: 'any',
      description: 'text',
      routing: { kind: 'any', clusters: ['a', 'b'], hasRowAffinity: true },
      isolation: { kind: 'standard', priority: 'medium' },
      revision: 3,
    },
    {
      id: 'boost',
      description: '',
      routing: { kind: 'single', cluster: 'a', allowsTransactions: false },
      isolation: { kind: 'data-boost', hostPays: true },
      revision: 4,
    },
  ],
  revision: 4,
};
/** With ordinary prototypes: decoded records have none. */
const plain = <T>(decoded: T): T => structuredClone(decoded);

describe('the golden files of resources', () => {
  test('an instance is the same, byte for byte, and is read back', () => {
    const file = { instance: INSTANCE, writes: ['w1', 'w2'] };
    const written = encodeInstance(file);
    const golden = goldenFile('instance-v1.json', written);
    assert.equal(Buffer.from(written).toString(), golden.toString());
    assert.deepEqual(plain(decodeInstance(instancePath(INSTANCE.name), golden)), plain(file));
  });

  test('a kept resource is the same, byte for byte, and is read back', () => {
    const name = 'projects/p/instances/i/logicalViews/v';
    const file = { name, owner: '1704067200000000', write: 'w1', contents: Buffer.from([0x12, 0, 0xff]) };
    const written = encodeResource(file);
    const golden = goldenFile('resource-v1.json', written);
    assert.equal(Buffer.from(written).toString(), golden.toString());
    assert.deepEqual(decodeResource(resourcePath('logicalViews', name), golden), file);
    const damaged = Buffer.from(golden.toString().replace(/"contents":"[^"]*"/, '"contents":"*"'));
    assert.throws(() => decodeResource('x', damaged), { code: Code.DATA_LOSS });
  });

  test('a policy is the same, byte for byte, and is read back', () => {
    const name = 'projects/p/instances/i/tables/t/columnFamilies/größe';
    const bindings = [
      { role: 'roles/bigtable.reader', members: ['token:a', 'allUsers'] },
      { role: 'roles/bigtable.admin', members: ['cert:CN=x'] },
    ];
    const file = { owner: '0000002a/2', bindings, write: 'w1' };
    const written = encodePolicy(file);
    const golden = goldenFile('policy-v1.json', written);
    assert.equal(Buffer.from(written).toString(), golden.toString());
    assert.deepEqual(decodePolicy(policyPath(name), golden), file);
  });
});
