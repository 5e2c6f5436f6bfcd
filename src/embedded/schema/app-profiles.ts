/** App profiles in the library's words. */
import {
  checkOptions,
  describeValue,
  invalidArgument,
  isObjectOfNames,
  type OptionTable,
  ownOf,
} from '../../base/index.ts';
import type {
  AnyClusterRouting,
  AppProfile as ModelAppProfile,
  DataBoostIsolation,
  SingleClusterRouting,
  StandardIsolation,
} from '../../model/index.ts';
import {
  type AppProfileChange,
  checkInstanceChange,
  type InstanceChange,
  type NewAppProfile,
} from '../../service/index.ts';
import { CALL_OPTIONS, type CallOptions } from '../calls/call-options.ts';
import { idOf, listOf, oneOf, textOf, truthOf } from '../values/input.ts';

export type AppProfile = NewAppProfile;

/** Where calls go, and whether transactions on rows are allowed. What is left out is false, or all clusters. */
export type RoutingOptions =
  | (Pick<SingleClusterRouting, 'kind' | 'cluster'> & Partial<SingleClusterRouting>)
  | (Pick<AnyClusterRouting, 'kind'> & Partial<AnyClusterRouting>);

/** The priority of the calls, or reads alone. What is left out is high, or false. */
export type IsolationOptions =
  | (Pick<StandardIsolation, 'kind'> & Partial<StandardIsolation>)
  | (Pick<DataBoostIsolation, 'kind'> & Partial<DataBoostIsolation>);

export interface AppProfileOptions extends CallOptions {
  readonly routing: RoutingOptions;
  /** At most 1024 characters. Default: ''. */
  readonly description?: string | undefined;
  /** Default: `{ kind: 'standard', priority: 'high' }`. */
  readonly isolation?: IsolationOptions | undefined;
}

/** What is left out stays. */
export interface AppProfileUpdate extends CallOptions {
  readonly description?: string | undefined;
  readonly routing?: RoutingOptions | undefined;
  readonly isolation?: IsolationOptions | undefined;
}

export interface DeleteAppProfileOptions extends CallOptions {
  /** Also the app profile `default`, without which all calls that name none fail. Default: false. */
  readonly ignoreWarnings?: boolean | undefined;
}

const PROFILE_OPTIONS = {
  ...CALL_OPTIONS,
  routing: 'free',
  description: 'free',
  isolation: 'free',
} satisfies OptionTable<AppProfileOptions>;
const DELETE_PROFILE_OPTIONS = {
  ...CALL_OPTIONS,
  ignoreWarnings: 'free',
} satisfies OptionTable<DeleteAppProfileOptions>;
const ROUTINGS = {
  single: { kind: 'free', cluster: 'bound', allowsTransactions: 'free' },
  any: { kind: 'free', clusters: 'free', hasRowAffinity: 'free' },
} as const satisfies Record<ModelAppProfile['routing']['kind'], OptionTable>;
const ISOLATIONS = {
  standard: { kind: 'free', priority: 'free' },
  'data-boost': { kind: 'free', hostPays: 'free' },
} as const satisfies Record<ModelAppProfile['isolation']['kind'], OptionTable>;
const PRIORITIES: readonly StandardIsolation['priority'][] = ['low', 'medium', 'high'];

/** Frozen. */
export function ownAppProfile({ id, description, routing, isolation }: NewAppProfile): AppProfile {
  const shown =
    routing.kind === 'any' ? { ...routing, clusters: Object.freeze([...routing.clusters]) } : { ...routing };
  return Object.freeze({
    id,
    description,
    routing: Object.freeze(shown),
    isolation: Object.freeze({ ...isolation }),
  });
}

/** INVALID_ARGUMENT for options that are not known or of the wrong form. */
export function askedAppProfile(instance: string, id: string, options: AppProfileOptions): InstanceChange {
  checkOptions(options, PROFILE_OPTIONS, 'createAppProfile');
  const { description, routing, isolation } = options;
  if (routing === undefined) throw invalidArgument("createAppProfile: routing must be given, such as { kind: 'any' }");
  const profile: NewAppProfile = {
    id: idOf(id, 'the id of an app profile'),
    description: description === undefined ? '' : textOf(description, 'description'),
    routing: routingOf(routing),
    isolation: isolationOf(isolation ?? { kind: 'standard' }),
  };
  return checked(instance, { kind: 'createAppProfile', profile });
}

export function askedAppProfileUpdate(instance: string, id: string, update: AppProfileUpdate): InstanceChange {
  checkOptions(update, PROFILE_OPTIONS, 'updateAppProfile');
  const { description, routing, isolation } = update;
  if (description === undefined && routing === undefined && isolation === undefined)
    throw invalidArgument('updateAppProfile: description, routing or isolation must be given');
  const change: AppProfileChange = {
    ...(description !== undefined && { description: textOf(description, 'description') }),
    ...(routing !== undefined && { routing: routingOf(routing) }),
    ...(isolation !== undefined && { isolation: isolationOf(isolation) }),
  };
  return checked(instance, { kind: 'updateAppProfile', id: idOf(id, 'the id of an app profile'), ...change });
}

export function askedAppProfileDeletion(id: string, options: DeleteAppProfileOptions): InstanceChange {
  checkOptions(options, DELETE_PROFILE_OPTIONS, 'deleteAppProfile');
  const { ignoreWarnings = false } = options;
  return {
    kind: 'deleteAppProfile',
    id: idOf(id, 'the id of an app profile'),
    ignoreWarnings: truthOf(ignoreWarnings, 'ignoreWarnings'),
  };
}

function routingOf(given: RoutingOptions): ModelAppProfile['routing'] {
  checkKind(given, ROUTINGS, 'routing');
  if (given.kind === 'single')
    return {
      kind: 'single',
      cluster: textOf(given.cluster, 'routing: cluster'),
      allowsTransactions: truthOf(given.allowsTransactions ?? false, 'routing: allowsTransactions'),
    };
  const clusters = listOf(given.clusters ?? [], 'routing: clusters').map((id) => textOf(id, 'routing: a cluster'));
  return {
    kind: 'any',
    clusters: clusters.sort(),
    hasRowAffinity: truthOf(given.hasRowAffinity ?? false, 'routing: hasRowAffinity'),
  };
}

function isolationOf(given: IsolationOptions): ModelAppProfile['isolation'] {
  checkKind(given, ISOLATIONS, 'isolation');
  if (given.kind === 'data-boost')
    return { kind: 'data-boost', hostPays: truthOf(given.hostPays ?? false, 'isolation: hostPays') };
  const { priority } = given;
  return {
    kind: 'standard',
    priority: priority === undefined ? 'high' : oneOf(priority, PRIORITIES, 'isolation: priority'),
  };
}

/** INVALID_ARGUMENT where it is of none of the kinds, or has fields that its kind does not have. */
function checkKind(given: { readonly kind: string }, kinds: Readonly<Record<string, OptionTable>>, what: string): void {
  const known = Object.keys(kinds).join(', ');
  if (!isObjectOfNames(given))
    throw invalidArgument(`${what} must be an object whose kind is one of ${known}, not ${describeValue(given)}`);
  const fields = typeof given.kind === 'string' ? ownOf(kinds, given.kind) : undefined;
  if (fields === undefined)
    throw invalidArgument(`${what}: kind must be one of ${known}, not ${describeValue(given.kind)}`);
  checkOptions(given, fields, what);
}

/** Checks the change as the service does, before a request is sent. */
function checked(instance: string, change: InstanceChange): InstanceChange {
  checkInstanceChange(instance, change);
  return change;
}
