import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { create, type MessageInitShape, toJson } from '@bufbuild/protobuf';
import { FieldMaskSchema } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { BigtableError, Code } from '../../base/index.ts';
import { AppProfileSchema } from '../generated/google/bigtable/admin/v2/instance_pb.ts';
import { applyMask } from './field-mask.ts';

const ALL = ['description', 'single_cluster_routing', 'multi_cluster_routing_use_any', 'standard_isolation'];

describe('a field mask', () => {
  const single = (clusterId: string, allowTransactionalWrites: boolean) =>
    ({ case: 'singleClusterRouting', value: { clusterId, allowTransactionalWrites } }) as const;
  const present = create(AppProfileSchema, { name: 'n', description: 'old', routingPolicy: single('a', true) });

  function masked(given: MessageInitShape<typeof AppProfileSchema>, ...paths: string[]) {
    const parts = { present, given: create(AppProfileSchema, given), mask: create(FieldMaskSchema, { paths }) };
    return toJson(AppProfileSchema, applyMask(AppProfileSchema, parts, ALL));
  }

  test('replaces what it names, and clears what the given message lacks', () => {
    assert.deepEqual(masked({ description: 'new', name: 'other' }, 'description'), {
      name: 'n',
      description: 'new',
      singleClusterRouting: { clusterId: 'a', allowTransactionalWrites: true },
    });
    assert.deepEqual(masked({}, 'description', 'single_cluster_routing'), { name: 'n' });
  });

  test('replaces a field inside a field, and leaves its neighbours', () => {
    assert.deepEqual(masked({ routingPolicy: single('b', false) }, 'single_cluster_routing.cluster_id'), {
      name: 'n',
      description: 'old',
      singleClusterRouting: { clusterId: 'b', allowTransactionalWrites: true },
    });
    assert.deepEqual(masked({}, 'single_cluster_routing.allow_transactional_writes'), {
      name: 'n',
      description: 'old',
      singleClusterRouting: { clusterId: 'a' },
    });
  });

  test('changes the member of a oneof, in whatever order it names them', () => {
    const any = { case: 'multiClusterRoutingUseAny' as const, value: { clusterIds: ['x'] } };
    const wanted = { name: 'n', description: 'old', multiClusterRoutingUseAny: { clusterIds: ['x'] } };
    const both = ['single_cluster_routing', 'multi_cluster_routing_use_any'];
    assert.deepEqual(masked({ routingPolicy: any }, ...both), wanted);
    assert.deepEqual(masked({ routingPolicy: any }, ...both.reverse()), wanted);
    assert.deepEqual(masked({ routingPolicy: any }, both[0]!), wanted);
  });

  test('leaves the present message as it was', () => {
    const before = toJson(AppProfileSchema, present);
    masked({ description: 'new' }, 'description', 'single_cluster_routing.cluster_id');
    assert.deepEqual(toJson(AppProfileSchema, present), before);
  });

  test('with any other path is INVALID_ARGUMENT', () => {
    for (const path of [
      '',
      '.',
      'name',
      'etag',
      'nothing',
      'description.deeper',
      'single_cluster_routing.',
      'Description',
    ])
      assert.throws(() => masked({}, path), { code: Code.INVALID_ARGUMENT }, path);
    assert.throws(() => masked({}), { code: Code.INVALID_ARGUMENT });
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 1 }), (paths) => {
        try {
          masked({}, ...paths);
        } catch (error) {
          assert.ok(error instanceof BigtableError && error.code === Code.INVALID_ARGUMENT, String(error));
        }
      }),
    );
  });
});
