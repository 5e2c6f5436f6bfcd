/** Operations that are done, for those who may see the resources that they are about. */
import type { RequestContext } from '../env/index.ts';
import { type KeptOperation, type OperationStore, parseResourceName, PERMITTED_AS } from '../service/index.ts';
import type { Rights } from './rights.ts';

const FORM = /^operations\/(.*)\/operations\/[^/]*$/s;

export class GuardedOperations implements OperationStore {
  readonly #operations: OperationStore;
  readonly #rights: Rights;

  constructor(operations: OperationStore, rights: Rights) {
    this.#operations = operations;
    this.#rights = rights;
  }

  keep(context: RequestContext, resource: string, contents: Uint8Array): Promise<string> {
    return this.#operations.keep(context, resource, contents);
  }

  /** One of a resource that the caller may not see is not there. */
  async find(context: RequestContext, name: string): Promise<KeptOperation | undefined> {
    return this.#maySee(context, name) ? this.#operations.find(context, name) : undefined;
  }

  async list(context: RequestContext, prefix: string): Promise<readonly KeptOperation[]> {
    return (await this.#operations.list(context, prefix)).filter(({ name }) => this.#maySee(context, name));
  }

  async forget(context: RequestContext, name: string): Promise<boolean> {
    return this.#maySee(context, name) && this.#operations.forget(context, name);
  }

  #maySee({ principal }: RequestContext, name: string): boolean {
    if (this.#rights.isOpen) return true;
    const resource = FORM.exec(name)?.[1] ?? '';
    const named = parseResourceName(resource);
    // clusters and app profiles are parts of their instance
    const inInstance = /^(projects\/[^/]+\/instances\/[^/]+)\//.exec(resource)?.[1];
    if (named === undefined)
      return inInstance !== undefined && this.#rights.allows(principal, 'bigtable.instances.get', inInstance);
    return this.#rights.allows(principal, `bigtable.${PERMITTED_AS[named.kind]}.get`, resource);
  }
}
