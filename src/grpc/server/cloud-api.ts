/**
 * The Cloud Bigtable API on an RpcServer, in terms of a service: the 84 calls of Data and Admin API (what is not implemented says
 * so), long-running operations, health and reflection.
 */
import type { Service } from '../../service/index.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { BigtableTableAdmin } from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { Bigtable } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { Operations as OperationsService } from '../generated/google/longrunning/operations_pb.ts';
import { Health as HealthService } from '../generated/grpc/health/v1/health_pb.ts';
import type { ApiEnv, RpcServer } from '../../wire/index.ts';
import { registerDataApi } from './data-api.ts';
import { Health } from './health.ts';
import { MethodTable } from './method-table.ts';
import { Operations } from './operations.ts';
import { Reflection } from './reflection.ts';
import { registerTableAdmin } from './table-admin.ts';

const SERVICES = [Bigtable, BigtableTableAdmin, BigtableInstanceAdmin, OperationsService, HealthService] as const;

/** Registers everything; answers the switch by which the server says that it stops. */
export function registerCloudApi(server: RpcServer, service: Service, env: ApiEnv): Health {
  const methods = new MethodTable(server);
  const operations = new Operations(env);
  const health = new Health(SERVICES.map((each) => each.typeName));
  registerDataApi(methods, service, env);
  registerTableAdmin(methods, service, operations);
  operations.register(methods);
  health.register(methods);
  new Reflection(SERVICES).register(methods);
  for (const each of SERVICES) methods.rest(each);
  return health;
}
