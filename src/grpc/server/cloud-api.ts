/**
 * The Cloud Bigtable API on an RpcServer, in terms of a service: the calls of Data and Admin API (one that is not
 * implemented says so), Edubba's own calls for operators (edubba.v1.Control), long-running operations, health and
 * reflection.
 *
 * The calls that move data are ready immediately. The others need the generated codec; the first of them to come waits
 * until it is loaded (docs/decisions/0039-generated-codec.md).
 */
import type { RawCallPasser, Service } from '../../service/index.ts';
import type { ApiEnv, RpcMethod, RpcServer } from '../../wire/index.ts';
import { loadGenerated } from '../codec/generated-in-steps.ts';
import { RequestDecoder } from '../codec/request-decoder.ts';
import { API_METHODS, API_SERVICES } from '../generated/api-methods.ts';
import { dataApi } from './data-api.ts';
import { Health } from './health.ts';
import { maxRequestBytesOf } from './request-limits.ts';

export interface CloudApi {
  /** Says to health checks that the server stops. */
  readonly health: Health;
  /** Loads the generated codec and the calls that need it, so that no call has to wait for them later. */
  load(): Promise<void>;
}

/**
 * Registers all calls. `passer`: passes calls for rows of other servers on as bytes; by default none are. `decoder`:
 * may be shared with the server's `rawCallHandler`.
 */
export function registerCloudApi(
  server: Pick<RpcServer, 'register'>,
  service: Service,
  env: ApiEnv,
  passer?: RawCallPasser,
  decoder = new RequestDecoder(env.clock),
): CloudApi {
  const health = new Health(API_SERVICES.filter((name) => !name.startsWith('grpc.reflection.')));
  const data = dataApi(service, env, decoder, passer);
  const cold = new ColdMethods(service, env, health, decoder);
  for (const { path, kind } of API_METHODS) {
    server.register(path, {
      ...(data.get(path) ?? coldMethod(path, kind, cold)),
      maxRequestBytes: maxRequestBytesOf(path, kind),
    });
  }
  return {
    health,
    async load() {
      await decoder.load();
      await cold.load();
    },
  };
}

/** The calls that need the generated codec, made once, when the first of them comes. */
class ColdMethods {
  readonly #service: Service;
  readonly #env: ApiEnv;
  readonly #health: Health;
  readonly #decoder: RequestDecoder;
  #methods: ReadonlyMap<string, RpcMethod> | undefined;

  constructor(service: Service, env: ApiEnv, health: Health, decoder: RequestDecoder) {
    this.#service = service;
    this.#env = env;
    this.#health = health;
    this.#decoder = decoder;
  }

  /** By path. */
  async load(): Promise<ReadonlyMap<string, RpcMethod>> {
    if (this.#methods !== undefined) return this.#methods;
    await loadGenerated('all', this.#env.clock);
    const { coldMethods } = await import('./cold-methods.ts');
    this.#methods ??= coldMethods(this.#service, this.#env, this.#health, this.#decoder);
    return this.#methods;
  }
}

/** A method that takes requests immediately and handles them once its handler is loaded. */
function coldMethod(path: string, kind: RpcMethod['kind'], cold: ColdMethods): RpcMethod {
  const loaded = async <K extends RpcMethod['kind']>(wanted: K): Promise<RpcMethod & { readonly kind: K }> => {
    const method = (await cold.load()).get(path);
    if (method?.kind !== wanted) throw new Error(`${path} is not a method of kind ${wanted}`);
    return method as RpcMethod & { readonly kind: K };
  };
  switch (kind) {
    case 'unary':
      return { kind, handle: async (call, bytes) => (await loaded('unary')).handle(call, bytes) };
    case 'stream':
      return { kind, handle: async (call, bytes, sink) => (await loaded('stream')).handle(call, bytes, sink) };
    case 'bidi':
      return { kind, handle: async (call, requests, sink) => (await loaded('bidi')).handle(call, requests, sink) };
  }
}
