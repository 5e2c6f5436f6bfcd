/**
 * Loads what the generated codec is made of, file by file: each builds the descriptors of its messages, some milliseconds of work, and a server that
 * has begun to answer must not be held for all of them at once. Leaves come first, as a file waits for those it imports.
 *
 * Only a matter of time: whatever is missing here is loaded by those who import it.
 */
import type { Clock } from '../../env/index.ts';

const STEPS: readonly (() => Promise<unknown>)[] = [
  () => import('@bufbuild/protobuf/wire'),
  () => import('@bufbuild/protobuf/reflect'),
  () => import('@bufbuild/protobuf/codegenv2'),
  () => import('@bufbuild/protobuf'),
  () => import('@bufbuild/protobuf/wkt'),
  () => import('../generated/google/api/field_behavior_pb.ts'),
  () => import('../generated/google/api/client_pb.ts'),
  () => import('../generated/google/api/resource_pb.ts'),
  () => import('../generated/google/api/annotations_pb.ts'),
  () => import('../generated/google/api/routing_pb.ts'),
  () => import('../generated/google/rpc/error_details_pb.ts'),
  () => import('../generated/google/bigtable/v2/types_pb.ts'),
  () => import('../generated/google/bigtable/v2/data_pb.ts'),
  () => import('../generated/google/bigtable/v2/request_stats_pb.ts'),
  () => import('../generated/google/bigtable/v2/session_pb.ts'),
  () => import('../generated/google/bigtable/v2/bigtable_pb.ts'),
  () => import('./rare-messages.ts'),
  () => import('../generated/google/iam/v1/policy_pb.ts'),
  () => import('../generated/google/iam/v1/iam_policy_pb.ts'),
  () => import('../generated/google/longrunning/operations_pb.ts'),
  () => import('../generated/google/bigtable/admin/v2/types_pb.ts'),
  () => import('../generated/google/bigtable/admin/v2/table_pb.ts'),
  () => import('../generated/google/bigtable/admin/v2/instance_pb.ts'),
  () => import('../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts'),
  () => import('../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts'),
  () => import('../generated/edubba/v1/control_pb.ts'),
  () => import('../generated/grpc/health/v1/health_pb.ts'),
  () => import('../generated/grpc/reflection/v1alpha/reflection_pb.ts'),
  () => import('../generated/grpc/reflection/v1/reflection_pb.ts'),
];

/** Between any two files others have their turn. */
export async function loadGeneratedInSteps(clock: Clock): Promise<void> {
  for (const load of STEPS) {
    await load();
    await clock.yield();
  }
}
