/**
 * All calls but those that move data. They go through the generated codec, so cloud-api.ts imports this file
 * dynamically.
 */
import type { Service } from '../../service/index.ts';
import { idsOf, INSTANCE } from '../convert/names.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { BigtableTableAdmin } from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { Control } from '../generated/edubba/v1/control_pb.ts';
import { Bigtable } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { Operations as OperationsService } from '../generated/google/longrunning/operations_pb.ts';
import { Health as HealthService } from '../generated/grpc/health/v1/health_pb.ts';
import type { ApiEnv, RpcMethod } from '../../wire/index.ts';
import { registerAppProfiles } from './app-profiles.ts';
import { registerAuthorizedViews } from './authorized-views.ts';
import { registerBackups } from './backups.ts';
import { registerChangeStreams } from './change-streams.ts';
import { registerControl } from './control.ts';
import type { Health } from './health.ts';
import { registerHealth } from './health-calls.ts';
import { registerHotTablets } from './hot-tablets.ts';
import { registerInstanceAdmin } from './instance-admin.ts';
import { registerMemoryLayers } from './memory-layers.ts';
import { MethodTable } from './method-table.ts';
import { Operations } from './operations.ts';
import { registerPolicies } from './policies.ts';
import { Reflection } from './reflection.ts';
import { registerSessionCalls } from './session-calls.ts';
import { registerSampleRowKeys } from './sample-row-keys.ts';
import { registerSchemaBundles } from './schema-bundles.ts';
import { registerSqlViews } from './sql-views.ts';
import { registerTableAdmin } from './table-admin.ts';
import { Views } from './views.ts';
import type { RequestDecoder } from '../codec/request-decoder.ts';

const SERVICES = [
  Bigtable,
  BigtableTableAdmin,
  BigtableInstanceAdmin,
  Control,
  OperationsService,
  HealthService,
] as const;

/** By path. */
export function coldMethods(
  service: Service,
  env: ApiEnv,
  health: Health,
  decoder: RequestDecoder,
): ReadonlyMap<string, RpcMethod> {
  const all = new Map<string, RpcMethod>();
  const methods = new MethodTable({ register: (path, method) => void all.set(path, method) });
  const operations = new Operations(env, service.operations);
  registerSampleRowKeys(methods, service, new Views(service, decoder));
  methods.unary(Bigtable.method.pingAndWarm, async (_context, { name }) => {
    idsOf(name, INSTANCE, 'name');
    return {};
  });
  registerSessionCalls(methods);
  registerTableAdmin(methods, service, operations);
  registerInstanceAdmin(methods, service, operations);
  registerMemoryLayers(methods, service, operations);
  registerHotTablets(methods, service, env.clock);
  registerAppProfiles(methods, service, operations);
  registerAuthorizedViews(methods, service, operations);
  registerSqlViews(methods, service, operations);
  registerSchemaBundles(methods, service, operations);
  registerBackups(methods, service, operations);
  registerChangeStreams(methods, service);
  registerPolicies(methods, service);
  registerControl(methods, service);
  operations.register(methods);
  registerHealth(methods, health);
  new Reflection(SERVICES).register(methods);
  for (const each of SERVICES) methods.registerUnimplemented(each);
  return all;
}
