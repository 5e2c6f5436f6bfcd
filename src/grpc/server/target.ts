/** The fields that calls on data have in common: the views they may name instead of a table, and the app profile. */
import { notFound } from '../../base/index.ts';
import { CallContext, type RequestContext } from '../../env/index.ts';
import type { AppProfileRules, CallKind } from '../../service/index.ts';

export function refuseAuthorizedView(name: string): void {
  if (name !== '')
    throw notFound(`authorized view ${JSON.stringify(name)} not found: Edubba has no authorized views yet`);
}

export function refuseMaterializedView(name: string): void {
  if (name !== '')
    throw notFound(`materialized view ${JSON.stringify(name)} not found: Edubba has no materialized views yet`);
}

/**
 * The context with the app profile and its priority. NOT_FOUND or FAILED_PRECONDITION where the profile does not allow
 * the call. `rules`: undefined where another server has checked them.
 */
export function withAppProfile(
  context: RequestContext,
  rules: Pick<AppProfileRules, 'check'> | undefined,
  kind: CallKind,
  table: string,
  appProfile: string,
): RequestContext {
  const priority = rules?.check(table, appProfile, kind) ?? context.priority;
  if (appProfile === '' && priority === context.priority) return context;
  if (!(context instanceof CallContext)) return { ...context, appProfile, priority };
  context.appProfile = appProfile;
  context.priority = priority;
  return context;
}
