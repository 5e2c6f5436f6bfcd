/** grpc.health.v1.Health. */
import { notFound } from '../../base/index.ts';
import {
  Health as HealthService,
  HealthCheckResponse_ServingStatus as Serving,
} from '../generated/grpc/health/v1/health_pb.ts';
import type { Health } from './health.ts';
import type { MethodTable } from './method-table.ts';

/** Health is answered however little memory is left. */
const UNCOUNTED = 0;

export function registerHealth(methods: MethodTable, health: Health): void {
  const calls = HealthService.method;
  const statusOf = (service: string): Serving => {
    if (!health.services.has(service)) return Serving.SERVICE_UNKNOWN;
    return health.isServing ? Serving.SERVING : Serving.NOT_SERVING;
  };
  methods.unary(
    calls.check,
    async (_context, request) => {
      if (!health.services.has(request.service))
        throw notFound(`service ${JSON.stringify(request.service)} is unknown`);
      return { status: statusOf(request.service) };
    },
    UNCOUNTED,
  );
  methods.unary(
    calls.list,
    async () => ({
      statuses: Object.fromEntries([...health.services].map((service) => [service, { status: statusOf(service) }])),
    }),
    UNCOUNTED,
  );
  methods.stream(calls.watch, async (context, request, send) => {
    await send({ status: statusOf(request.service) });
    if (!health.isServing) return;
    await health.stopped(context);
    await send({ status: statusOf(request.service) });
  });
}
