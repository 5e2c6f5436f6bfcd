/**
 * google.bigtable.admin.v2.BigtableInstanceAdmin: app profiles. Which calls a profile allows is checked by
 * `withAppProfile`.
 */
import { BigtableError, Code, invalidArgument, quote } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { AppProfile, Instance } from '../../model/index.ts';
import { partOf, type Service } from '../../service/index.ts';
import { applyMask } from '../convert/field-mask.ts';
import { appProfileMessage, appProfileOf } from '../convert/instance.ts';
import { ANY, APP_PROFILE, idsOf, INSTANCE } from '../convert/names.ts';
import {
  BigtableInstanceAdmin,
  type CreateAppProfileRequest,
  type DeleteAppProfileRequest,
  type ListAppProfilesRequest,
  UpdateAppProfileMetadataSchema,
  type UpdateAppProfileRequest,
} from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import {
  type AppProfile as AppProfileMessage,
  AppProfileSchema,
} from '../generated/google/bigtable/admin/v2/instance_pb.ts';
import type { Operation } from '../generated/google/longrunning/operations_pb.ts';
import { instancesOf, untilNotOvertaken } from './instances-of.ts';
import type { MethodTable } from './method-table.ts';
import type { Operations } from './operations.ts';
import { pageOf } from './pages.ts';

const MAX_PAGE = 500;
const FIELDS = [
  'description',
  'multi_cluster_routing_use_any',
  'single_cluster_routing',
  'priority',
  'standard_isolation',
  'data_boost_isolation_read_only',
];

export function registerAppProfiles(methods: MethodTable, service: Service, operations: Operations): void {
  const admin = BigtableInstanceAdmin.method;
  const calls = new AppProfiles(service, operations);
  methods.change(admin.createAppProfile, (context, request) => calls.create(context, request));
  methods.unary(admin.getAppProfile, async (context, { name }) => {
    const { instance, profile } = await calls.find(context, name, 'name');
    return appProfileMessage(instance, profile);
  });
  methods.unary(admin.listAppProfiles, (context, request) => calls.list(context, request));
  methods.change(admin.updateAppProfile, (context, request) => calls.update(context, request));
  methods.change(admin.deleteAppProfile, async (context, request) => {
    await calls.delete(context, request);
    return {};
  });
}

class AppProfiles {
  readonly #service: Service;
  readonly #operations: Operations;

  constructor(service: Service, operations: Operations) {
    this.#service = service;
    this.#operations = operations;
  }

  async create(context: RequestContext, request: CreateAppProfileRequest): Promise<AppProfileMessage> {
    const { parent, appProfileId: id, appProfile } = request;
    idsOf(parent, INSTANCE, 'parent');
    idsOf(`${parent}/appProfiles/${id}`, APP_PROFILE, 'app_profile_id');
    if (appProfile === undefined) throw invalidArgument('app_profile must be set', { field: 'app_profile' });
    const profile = appProfileOf(id, appProfile);
    const changed = await instancesOf(this.#service).changeInstance(context, parent, {
      kind: 'createAppProfile',
      profile,
    });
    return appProfileMessage(changed, partOf(changed, 'appProfiles', id));
  }

  async find(
    context: RequestContext,
    name: string,
    field: string,
  ): Promise<{ readonly instance: Instance; readonly profile: AppProfile }> {
    const [project, id, profile] = idsOf(name, APP_PROFILE, field);
    const instance = await instancesOf(this.#service).getInstance(context, `projects/${project}/instances/${id}`);
    return { instance, profile: partOf(instance, 'appProfiles', profile) };
  }

  async list(context: RequestContext, request: ListAppProfilesRequest) {
    const { parent } = request;
    const [project, id] = idsOf(parent, INSTANCE, 'parent');
    const all = instancesOf(this.#service);
    const instances = id === ANY ? await all.listInstances(context, project) : [await all.getInstance(context, parent)];
    const profiles = instances
      .flatMap((instance) => instance.appProfiles.map((profile) => appProfileMessage(instance, profile)))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const prefix = id === ANY ? `projects/${project}/instances/` : `${parent}/appProfiles/`;
    const { items, nextPageToken } = pageOf(profiles, request, prefix, MAX_PAGE);
    return { appProfiles: items, nextPageToken };
  }

  async update(context: RequestContext, request: UpdateAppProfileRequest): Promise<Operation> {
    const { appProfile: given, updateMask: mask } = request;
    if (given === undefined) throw invalidArgument('app_profile must be set', { field: 'app_profile' });
    checkEtag(given);
    const changed = await untilNotOvertaken(async () => {
      const { instance, profile } = await this.find(context, given.name, 'app_profile.name');
      const present = appProfileMessage(instance, profile);
      const next = appProfileOf(profile.id, applyMask(AppProfileSchema, { present, given, mask }, FIELDS));
      const change = { kind: 'replaceAppProfile', profile: next, revision: profile.revision } as const;
      const after = await instancesOf(this.#service).changeInstance(context, instance.name, change);
      return appProfileMessage(after, partOf(after, 'appProfiles', profile.id));
    });
    return this.#operations.done(context, [UpdateAppProfileMetadataSchema, {}], [AppProfileSchema, changed]);
  }

  async delete(context: RequestContext, { name, ignoreWarnings }: DeleteAppProfileRequest): Promise<void> {
    const [project, instance, id] = idsOf(name, APP_PROFILE, 'name');
    await instancesOf(this.#service).changeInstance(context, `projects/${project}/instances/${instance}`, {
      kind: 'deleteAppProfile',
      id,
      ignoreWarnings,
    });
  }
}

/** No app profile is answered with an etag. */
function checkEtag({ name, etag }: AppProfileMessage): void {
  if (etag !== '') throw new BigtableError(Code.ABORTED, `${name} was never answered with etag ${quote(etag, 100)}`);
}
