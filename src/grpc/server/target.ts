/** Fields that calls on data have in common: the materialized view in place of a table, and the app profile. */
import { BigtableError, Code, invalidArgument, notFound, quote } from '../../base/index.ts';
import { CallContext, type RequestContext } from '../../env/index.ts';
import type { AppProfileRules, CallKind, Service } from '../../service/index.ts';
import { idsOf, MATERIALIZED_VIEW } from '../convert/names.ts';

/** Stands for each byte that is not UTF-8. No id of an app profile has it. */
const REPLACED = '\ufffd';

/** FAILED_PRECONDITION for a view that exists, which nothing computes yet; else NOT_FOUND. */
export async function refuseMaterializedView(
  { resources }: Pick<Service, 'resources'>,
  context: RequestContext,
  name: string,
): Promise<never> {
  idsOf(name, MATERIALIZED_VIEW, 'materialized_view_name');
  if (resources === undefined) throw notFound(`${name} does not exist`);
  await resources.find(context, 'materializedViews', name);
  throw new BigtableError(
    Code.FAILED_PRECONDITION,
    `${name} cannot be read: it is defined by SQL, which Edubba does not run yet`,
  );
}

/**
 * The context with the app profile and its priority. NOT_FOUND or FAILED_PRECONDITION where the profile does not allow
 * the call. INVALID_ARGUMENT where its id was not UTF-8. `rules`: undefined where another server has checked them.
 */
export function withAppProfile(
  context: RequestContext,
  rules: Pick<AppProfileRules, 'check'> | undefined,
  kind: CallKind,
  table: string,
  appProfile: string,
): RequestContext {
  if (appProfile.includes(REPLACED)) {
    const field = 'app_profile_id';
    throw invalidArgument(`${field} ${quote(appProfile, 200)} must be UTF-8`, { field });
  }
  const priority = rules?.check(table, appProfile, kind) ?? context.priority;
  if (appProfile === '' && priority === context.priority) return context;
  if (!(context instanceof CallContext)) return { ...context, appProfile, priority };
  context.appProfile = appProfile;
  context.priority = priority;
  return context;
}
