/** Views and schema bundles, as far as the caller has rights on them. */
import type { RequestContext } from '../env/index.ts';
import type { KeptResource, ResourceKind, ResourceStore } from '../service/index.ts';
import type { Gate } from './gate.ts';

export class GuardedResources implements ResourceStore {
  readonly #resources: ResourceStore;
  readonly #gate: Gate;

  constructor(resources: ResourceStore, gate: Gate) {
    this.#resources = resources;
    this.#gate = gate;
  }

  create(context: RequestContext, kind: ResourceKind, name: string, contents: Uint8Array): Promise<KeptResource> {
    const parent = name.slice(0, Math.max(0, name.lastIndexOf(`/${kind}/`)));
    return this.#change(context, 'create', kind, parent, () => this.#resources.create(context, kind, name, contents));
  }

  async find(context: RequestContext, kind: ResourceKind, name: string): Promise<KeptResource> {
    this.#gate.check(context, `${kind}.get`, `bigtable.${kind}.get`, name);
    return this.#resources.find(context, kind, name);
  }

  /** Those that the caller may see; PERMISSION_DENIED where the parent is closed to it, and none is seen. */
  async list(context: RequestContext, kind: ResourceKind, parent: string): Promise<readonly KeptResource[]> {
    const { rights } = this.#gate;
    const all = await this.#resources.list(context, kind, parent);
    const seen = all.filter(({ name }) => rights.allows(context.principal, `bigtable.${kind}.get`, name));
    if (seen.length === 0) this.#gate.check(context, `${kind}.list`, `bigtable.${kind}.list`, parent);
    return seen;
  }

  replace(context: RequestContext, kind: ResourceKind, resource: KeptResource): Promise<KeptResource> {
    const { name } = resource;
    return this.#change(context, 'update', kind, name, () => this.#resources.replace(context, kind, resource));
  }

  remove(context: RequestContext, kind: ResourceKind, name: string, version: number): Promise<void> {
    return this.#change(context, 'delete', kind, name, () => this.#resources.remove(context, kind, name, version));
  }

  /** What is left of a parent that the caller has deleted: its own policy went with it. */
  removeAllOf(context: RequestContext, parent: string): Promise<void> {
    return this.#resources.removeAllOf(context, parent);
  }

  #change<T>(
    context: RequestContext,
    verb: 'create' | 'update' | 'delete',
    kind: ResourceKind,
    resource: string,
    work: () => Promise<T>,
  ): Promise<T> {
    return this.#gate.change(context, `${kind}.${verb}`, `bigtable.${kind}.${verb}`, resource, work);
  }
}
