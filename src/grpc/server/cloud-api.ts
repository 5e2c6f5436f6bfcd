/**
 * The Cloud Bigtable API on an RpcServer, in terms of a service: the 84 calls of Data and Admin API (what is not implemented says
 * so), Edubba's own calls for operators (edubba.v1.Control), long-running operations, health and reflection.
 *
 * The calls that data moves by are there at once; the others are loaded when the first of them comes, since a server that starts has no time for them.
 */
import type { Service } from '../../service/index.ts';
import type { ApiEnv, RpcMethod, RpcServer } from '../../wire/index.ts';
import { loadGeneratedInSteps } from '../codec/generated-in-steps.ts';
import { lazily } from '../codec/lazily.ts';
import { loadRareMessages } from '../codec/rare.ts';
import { API_METHODS, API_SERVICES, type ApiMethod } from './api-methods.ts';
import { dataApi } from './data-api.ts';
import { Health } from './health.ts';
import { maxRequestBytesOf } from './request-limits.ts';

/** Answers the method of that path, when it is loaded. */
type Load = (path: string) => Promise<RpcMethod | undefined>;

export interface CloudApi {
  /** The switch by which the server says that it stops. */
  readonly health: Health;
  /** Loads now what the first call that needs it would have to wait for. */
  load(): Promise<void>;
}

/** Registers everything. */
export function registerCloudApi(server: Pick<RpcServer, 'register'>, service: Service, env: ApiEnv): CloudApi {
  const health = new Health(API_SERVICES.filter((name) => !name.startsWith('grpc.reflection.')));
  const atOnce = dataApi(service, env);
  const rest = lazily(async () => {
    await loadGeneratedInSteps(env.clock);
    return (await import('./rest-of-api.ts')).restOfApi(service, env, health);
  });
  const load: Load = async (path) => (await rest()).get(path);
  for (const method of API_METHODS) {
    server.register(method.path, {
      ...(atOnce.get(method.path) ?? loadedMethod(method, load)),
      maxRequestBytes: maxRequestBytesOf(method),
    });
  }
  return {
    health,
    async load() {
      await rest();
      await loadRareMessages();
    },
  };
}

function loadedMethod({ path, kind }: ApiMethod, load: Load): RpcMethod {
  const loaded = async <K extends RpcMethod['kind']>(wanted: K): Promise<RpcMethod & { readonly kind: K }> => {
    const method = await load(path);
    if (method?.kind !== wanted) throw new Error(`${path} is not what it was said to be`);
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
