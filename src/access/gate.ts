/** Checks of permissions, whose refusals are logged. */
import type { RequestContext } from '../env/index.ts';
import type { Audit } from './audit.ts';
import { denied, type Rights } from './rights.ts';

export class Gate {
  readonly rights: Rights;
  readonly #audit: Audit;

  constructor(rights: Rights, audit: Audit) {
    this.rights = rights;
    this.#audit = audit;
  }

  /** PERMISSION_DENIED where the caller does not have the permission. */
  check(context: RequestContext, call: string, permission: string, resource: string): void {
    if (!this.rights.allows(context.principal, permission, resource)) this.refuse(context, call, permission, resource);
  }

  refuse(context: RequestContext, call: string, permission: string, resource: string): never {
    this.#audit.refusal(context, call, resource);
    throw denied(context.principal, permission, resource);
  }

  /** PERMISSION_DENIED where the caller is no operator: it may not do everything. */
  checkOperator(context: RequestContext, call: string): void {
    if (!this.rights.isOperator(context.principal))
      this.refuse(context, call, 'bigtable.instances.update', 'the database');
  }

  /** Carries out a change for an operator, and logs its outcome. */
  operate<T>(context: RequestContext, call: string, resource: string, work: () => Promise<T>): Promise<T> {
    return this.#audit.change(context, call, resource, async () => {
      if (!this.rights.isOperator(context.principal))
        throw denied(context.principal, 'bigtable.instances.update', 'the database');
      return work();
    });
  }

  /** Carries out a change that needs the permission, and logs its outcome. */
  change<T>(
    context: RequestContext,
    call: string,
    permission: string,
    resource: string,
    work: () => Promise<T>,
  ): Promise<T> {
    return this.#audit.change(context, call, resource, async () => {
      this.rights.check(context, permission, resource);
      return work();
    });
  }
}
