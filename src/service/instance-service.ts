/**
 * Instances, clusters and app profiles (API: google.bigtable.admin.v2.BigtableInstanceAdmin).
 *
 * An instance exists if it was created, or has a table, or is the default one: the instance `local` of project `local`,
 * and of each project that has no other.
 */
import type { RequestContext } from '../env/index.ts';
import type { AppProfile, Autoscaling, Cluster, Instance } from '../model/index.ts';

/** Revisions are given by the service. */
export type NewCluster = Omit<Cluster, 'revision' | 'memoryLayer'>;
export type NewAppProfile = Omit<AppProfile, 'revision'>;

export interface NewInstance extends Pick<Instance, 'name' | 'displayName' | 'type' | 'edition' | 'labels'> {
  /** At least one. */
  readonly clusters: readonly NewCluster[];
}

export interface ClusterChange {
  readonly nodes?: number | undefined;
  /** null: the number of nodes is fixed. */
  readonly autoscaling?: Autoscaling | null | undefined;
}

export interface AppProfileChange {
  readonly description?: string | undefined;
  readonly routing?: AppProfile['routing'] | undefined;
  readonly isolation?: AppProfile['isolation'] | undefined;
}

/** `revision`: of the part that is replaced, as its caller knows it; ABORTED if it is another by now. */
export type InstanceChange =
  | ({ readonly kind: 'describe' } & Partial<Pick<Instance, 'displayName' | 'type' | 'edition' | 'labels'>>)
  | { readonly kind: 'createCluster'; readonly cluster: NewCluster }
  | { readonly kind: 'replaceCluster'; readonly cluster: NewCluster; readonly revision: number }
  /** What is left out stays. */
  | ({ readonly kind: 'updateCluster'; readonly id: string } & ClusterChange)
  | { readonly kind: 'deleteCluster'; readonly id: string }
  /** `etag`: of the memory layer as its caller knows it; ABORTED if it is another by now. Default: any. */
  | {
      readonly kind: 'setMemoryLayer';
      /** That of the cluster. */
      readonly id: string;
      readonly isOn: boolean;
      readonly etag?: string | undefined;
    }
  | { readonly kind: 'createAppProfile'; readonly profile: NewAppProfile }
  | { readonly kind: 'replaceAppProfile'; readonly profile: NewAppProfile; readonly revision: number }
  /** What is left out stays. */
  | ({ readonly kind: 'updateAppProfile'; readonly id: string } & AppProfileChange)
  /**
   * FAILED_PRECONDITION for the app profile `default`, without which calls that name none fail, unless
   * `ignoreWarnings` is true (API: DeleteAppProfileRequest.ignore_warnings). Default: false.
   */
  | { readonly kind: 'deleteAppProfile'; readonly id: string; readonly ignoreWarnings?: boolean | undefined };

export interface InstanceService {
  /** NOT_FOUND where it does not exist. */
  getInstance(context: RequestContext, name: string): Promise<Instance>;
  /** Those of the project, by name. */
  listInstances(context: RequestContext, project: string): Promise<readonly Instance[]>;
  /** With the app profile `default`. ALREADY_EXISTS also where it exists without having been created. */
  createInstance(context: RequestContext, instance: NewInstance): Promise<Instance>;
  /** All of the change or nothing. Returns the instance as it is after it. */
  changeInstance(context: RequestContext, name: string, change: InstanceChange): Promise<Instance>;
  /**
   * Deletes it with all of its tables. FAILED_PRECONDITION, and nothing is deleted, where it is the default one or a
   * table is protected.
   */
  deleteInstance(context: RequestContext, name: string): Promise<void>;
}
