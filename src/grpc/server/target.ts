/** The fields that calls on data have in common: the views they may name instead of a table, and the app profile. */
import { notFound } from '../../base/index.ts';
import { CallContext, type RequestContext } from '../../env/index.ts';

export function refuseAuthorizedView(name: string): void {
  if (name !== '')
    throw notFound(`authorized view ${JSON.stringify(name)} not found: Edubba has no authorized views yet`);
}

export function refuseMaterializedView(name: string): void {
  if (name !== '')
    throw notFound(`materialized view ${JSON.stringify(name)} not found: Edubba has no materialized views yet`);
}

export function withAppProfile(context: RequestContext, appProfile: string): RequestContext {
  if (appProfile === '') return context;
  if (!(context instanceof CallContext)) return { ...context, appProfile };
  context.appProfile = appProfile;
  return context;
}
