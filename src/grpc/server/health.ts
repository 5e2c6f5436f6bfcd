/**
 * grpc.health.v1.Health: whether the server serves, as a whole ("") and by service. Watchers are told of every change, and let go
 * when the server stops.
 */
import { BigtableError, Code, notFound } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import { Health as HealthService, HealthCheckResponse_ServingStatus as Serving } from '../generated/grpc/health/v1/health_pb.ts';
import type { MethodTable } from './method-table.ts';

/** Each watcher holds a stream open. */
const MOST_WATCHERS = 1000;

export class Health {
  readonly #services: ReadonlySet<string>;
  readonly #watchers = new Set<() => void>();
  #serving = true;

  constructor(services: readonly string[]) {
    this.#services = new Set(['', ...services]);
  }

  /** NOT_SERVING from now on. */
  stop(): void {
    this.#serving = false;
    for (const wake of [...this.#watchers]) wake();
  }

  register(methods: MethodTable): void {
    const calls = HealthService.method;
    methods.unary(calls.check, async (_context, request) => {
      if (!this.#services.has(request.service)) throw notFound(`service ${JSON.stringify(request.service)} is unknown`);
      return { status: this.#status(request.service) };
    });
    methods.unary(calls.list, async () => ({
      statuses: Object.fromEntries([...this.#services].map((service) => [service, { status: this.#status(service) }])),
    }));
    methods.stream(calls.watch, async (context, request, send) => {
      await send({ status: this.#status(request.service) });
      if (!this.#serving) return;
      await this.#stopped(context);
      await send({ status: this.#status(request.service) });
    });
  }

  #status(service: string): Serving {
    if (!this.#services.has(service)) return Serving.SERVICE_UNKNOWN;
    return this.#serving ? Serving.SERVING : Serving.NOT_SERVING;
  }

  #stopped(context: RequestContext): Promise<void> {
    if (this.#watchers.size >= MOST_WATCHERS) throw new BigtableError(Code.RESOURCE_EXHAUSTED, `${MOST_WATCHERS} watch the health already`);
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#watchers.delete(wake);
        context.signal?.removeEventListener('abort', wake);
        resolve();
      };
      this.#watchers.add(wake);
      context.signal?.addEventListener('abort', wake, { once: true });
    });
  }
}
