/**
 * Resources of the API that are kept as they are: authorized views, which the front doors keep to, views that are
 * defined by SQL, and schema bundles. What their contents mean is the door's own matter.
 */
import type { RequestContext } from '../env/index.ts';

/** The kinds, as the API names their collections. */
export type ResourceKind = 'authorizedViews' | 'logicalViews' | 'materializedViews' | 'schemaBundles';

export interface KeptResource {
  /** The full name: PARENT/KIND/ID. */
  readonly name: string;
  readonly contents: Uint8Array;
  /** Another one after each change; never reused. */
  readonly version: number;
}

/** Larger contents are not kept. */
export const MAX_RESOURCE_BYTES: Readonly<Record<ResourceKind, number>> = {
  authorizedViews: 64 * 1024,
  logicalViews: 64 * 1024,
  materializedViews: 64 * 1024,
  schemaBundles: 512 * 1024,
};

/** The authorized views, for the front doors of this database. */
export interface AuthorizedViewSource {
  /** Begins to follow the views; before this none is known. */
  start(): Promise<void>;
  stop(): void;
  /** As known now: undefined proves nothing. The same object as long as the view is in the same state. */
  find(name: string): KeptResource | undefined;
}

/** A resource goes with its parent, the instance or table that its name begins with. NOT_FOUND without the parent. */
export interface ResourceStore {
  /** ALREADY_EXISTS; RESOURCE_EXHAUSTED where the parent has as many as it may have. */
  create(context: RequestContext, kind: ResourceKind, name: string, contents: Uint8Array): Promise<KeptResource>;
  /** NOT_FOUND where there is none. */
  find(context: RequestContext, kind: ResourceKind, name: string): Promise<KeptResource>;
  /** Those of a parent, by name. */
  list(context: RequestContext, kind: ResourceKind, parent: string): Promise<readonly KeptResource[]>;
  /** ABORTED where it has another version by now. */
  replace(context: RequestContext, kind: ResourceKind, resource: KeptResource): Promise<KeptResource>;
  /** ABORTED where it has another version by now, or is gone. */
  remove(context: RequestContext, kind: ResourceKind, name: string, version: number): Promise<void>;
  /** Removes what is left of those whose name begins with that of a parent which is deleted, and its policy. */
  removeAllOf(context: RequestContext, parent: string): Promise<void>;
}
