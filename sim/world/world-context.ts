/** The context of calls that no client makes: the world has them made. */
import { type Env, requestContext, type RequestContext } from '../../src/env/index.ts';

export function worldContext(
  { requestBudget, clock }: Pick<Env, 'requestBudget' | 'clock'>,
  timeoutMs: number,
): RequestContext {
  const deadlineMs = clock.monotonicMs() + timeoutMs;
  return requestContext({ budget: requestBudget, deadlineMs, principal: 'simulator' });
}
