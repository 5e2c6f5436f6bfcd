/**
 * Loads the modules of the generated codec one after another. Each builds the descriptors of its messages when it is
 * evaluated, which takes milliseconds: one import of them all would hold the event loop for 25 to 60 ms
 * (docs/decisions/0039-generated-codec.md).
 *
 * A module comes after those that it imports. One that is missing here is still loaded, by the one that imports it.
 */
import type { Clock } from '../../env/index.ts';

type Step = () => Promise<unknown>;

/** What data calls need. */
const DATA_STEPS: readonly Step[] = [
  () => import('@bufbuild/protobuf/codegenv2'),
  () => import('@bufbuild/protobuf'),
  () => import('@bufbuild/protobuf/wkt'),
  () => import('../generated/google/api/annotations_pb.ts'),
  () => import('../generated/google/api/client_pb.ts'),
  () => import('../generated/google/api/routing_pb.ts'),
  () => import('../generated/google/bigtable/v2/data_pb.ts'),
  () => import('../generated/google/bigtable/v2/session_pb.ts'),
  () => import('../generated/google/bigtable/v2/bigtable_pb.ts'),
];

/** What the other calls need besides. */
const ADMIN_STEPS: readonly Step[] = [
  () => import('../generated/google/iam/v1/iam_policy_pb.ts'),
  () => import('../generated/google/longrunning/operations_pb.ts'),
  () => import('../generated/google/bigtable/admin/v2/table_pb.ts'),
  () => import('../generated/google/bigtable/admin/v2/instance_pb.ts'),
  () => import('../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts'),
  () => import('../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts'),
  () => import('../generated/grpc/reflection/v1alpha/reflection_pb.ts'),
  () => import('../generated/grpc/reflection/v1/reflection_pb.ts'),
];

/** Loads the modules of `which` calls. Between two of them other work has its turn. */
export async function loadGenerated(which: 'data' | 'all', clock: Clock): Promise<void> {
  for (const load of which === 'data' ? DATA_STEPS : [...DATA_STEPS, ...ADMIN_STEPS]) {
    await load();
    // descriptors stay for as long as the process: the collector moves them now, in small parts
    await clock.slices.next(true);
  }
}
