/** A raw server that reports errors as the API does, and a context for calls; for the tests of this room. */
import { rawServer } from '../../test/raw-server.ts';
import { type RequestContext, requestContext } from '../env/index.ts';
import type { ApiEnv, WireServer } from '../wire/index.ts';
import { wireStatus } from './rpc/status.ts';

export function testContext(env: ApiEnv, options: { signal?: AbortSignal; deadlineMs?: number } = {}): RequestContext {
  return requestContext({ budget: env.requestBudget, ...options });
}

/** A server with the methods that `register` adds, and a raw client to it. */
export function apiServer(env: ApiEnv, register: (server: WireServer) => void) {
  return rawServer(env, register, { server: { statusOf: wireStatus } });
}
