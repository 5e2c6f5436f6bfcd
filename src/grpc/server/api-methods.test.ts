import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Control } from '../generated/edubba/v1/control_pb.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { BigtableTableAdmin } from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { Bigtable } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { Operations } from '../generated/google/longrunning/operations_pb.ts';
import { Health } from '../generated/grpc/health/v1/health_pb.ts';
import { ServerReflection } from '../generated/grpc/reflection/v1/reflection_pb.ts';
import { ServerReflection as ServerReflectionAlpha } from '../generated/grpc/reflection/v1alpha/reflection_pb.ts';
import { API_METHODS, API_SERVICES } from '../generated/api-methods.ts';

const KINDS = { unary: 'unary', server_streaming: 'stream', client_streaming: 'bidi', bidi_streaming: 'bidi' } as const;

test('the calls are those of the descriptors, and of their kinds', () => {
  const services = [
    Bigtable,
    BigtableTableAdmin,
    BigtableInstanceAdmin,
    Control,
    Operations,
    Health,
    ServerReflection,
    ServerReflectionAlpha,
  ];
  assert.deepEqual(
    API_SERVICES,
    services.map(({ typeName }) => typeName),
  );
  const expected = services.flatMap(({ typeName, methods }) =>
    methods.map(({ name, methodKind }) => ({ path: `/${typeName}/${name}`, kind: KINDS[methodKind] })),
  );
  const byPath = (a: { readonly path: string }, b: { readonly path: string }): number => (a.path < b.path ? -1 : 1);
  assert.deepEqual([...API_METHODS].sort(byPath), expected.sort(byPath));
});
