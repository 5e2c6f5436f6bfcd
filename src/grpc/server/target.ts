/** What the calls on data have in common: the views they may name instead of a table, and the app profile. */
import { BigtableError, Code } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';

export function refuseAuthorizedView(name: string): void {
  if (name !== '') throw new BigtableError(Code.UNIMPLEMENTED, `authorized views are not implemented by Edubba: ${JSON.stringify(name)}`);
}

export function refuseMaterializedView(name: string): void {
  if (name !== '') throw new BigtableError(Code.UNIMPLEMENTED, `materialized views are not implemented by Edubba: ${JSON.stringify(name)}`);
}

export function withAppProfile(context: RequestContext, appProfile: string): RequestContext {
  return appProfile === '' ? context : { ...context, appProfile };
}
