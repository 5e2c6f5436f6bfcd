/**
 * Policies of resources (API: google.iam.v1): kept in the lock service, followed by every front door, and enforced by
 * the guard that stands before each door's service (room `access`).
 */
import { BigtableError, Code } from '../base/index.ts';
import type { RequestContext } from '../env/index.ts';
import type { Policy, TableSchema } from '../model/index.ts';

export interface KeptPolicy extends Policy {
  /** Another one after each change; 0 where the resource has no policy. */
  readonly version: number;
}

export interface PolicyStore {
  /** Without bindings where there is no policy. NOT_FOUND where the resource does not exist. */
  getPolicy(context: RequestContext, resource: string): Promise<KeptPolicy>;
  /**
   * Replaces the whole policy; without bindings it is removed. ABORTED where it has another version by now than the
   * given one; by default any is replaced.
   */
  setPolicy(context: RequestContext, resource: string, policy: Policy, version?: number): Promise<KeptPolicy>;
  /** Which of the permissions the caller has. Undefined where rights are not checked. */
  testPermissions?(context: RequestContext, resource: string, permissions: readonly string[]): Promise<string[]>;
}

/** The policies of all resources, as a front door knows them. */
export interface PolicySource {
  /** Begins to follow the policies; before this none is known. */
  start(): Promise<void>;
  stop(): void;
  /** False while policies may have changed without this knowing. */
  readonly isCurrent: boolean;
  /** True where, as far as is known, there is no policy. */
  readonly isEmpty: boolean;
  /** Another number whenever a policy may have changed. */
  readonly changes: number;
  find(resource: string): Policy | undefined;
  /** Those of the families of a table. Not a hot path. */
  ofFamilies(table: string): ReadonlyMap<string, Policy>;
  /** One object for each state of a table; undefined where it is not known yet. */
  schemaOf(table: string): TableSchema | undefined;
}

/** The error where a policy has another version than that of the change. */
export function changedPolicy(resource: string): BigtableError {
  return new BigtableError(Code.ABORTED, `the policy of ${resource} has changed since it was read: read it again`);
}
