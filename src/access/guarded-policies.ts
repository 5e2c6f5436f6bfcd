/** Policies, for those who may read and change them. */
import { BigtableError, Code } from '../base/index.ts';
import type { RequestContext } from '../env/index.ts';
import type { Policy } from '../model/index.ts';
import {
  checkPolicy,
  type KeptPolicy,
  parseResourceName,
  PERMISSIONS,
  PERMITTED_AS,
  type PolicyStore,
} from '../service/index.ts';
import type { GuardParts } from './guarded-instances.ts';

export class GuardedPolicies implements PolicyStore {
  readonly #policies: PolicyStore;
  readonly #parts: GuardParts;

  constructor(policies: PolicyStore, parts: GuardParts) {
    this.#policies = policies;
    this.#parts = parts;
  }

  async getPolicy(context: RequestContext, resource: string): Promise<KeptPolicy> {
    this.#parts.rights.check(context, permissionOf(resource, 'getIamPolicy'), resource);
    return this.#policies.getPolicy(context, resource);
  }

  /** FAILED_PRECONDITION where the caller would lose the right to do so again: nobody else might have it. */
  setPolicy(context: RequestContext, resource: string, policy: Policy, version?: number): Promise<KeptPolicy> {
    const { rights, audit } = this.#parts;
    return audit.change(context, 'SetIamPolicy', resource, async () => {
      checkPolicy(policy);
      const permission = permissionOf(resource, 'setIamPolicy');
      rights.check(context, permission, resource);
      if (!rights.wouldAllow(context.principal, permission, resource, policy))
        throw new BigtableError(
          Code.FAILED_PRECONDITION,
          `the policy takes ${permission} on ${resource} from its own author, ${context.principal}: give yourself a role that has it`,
        );
      return this.#policies.setPolicy(context, resource, policy, version);
    });
  }

  /** Those that are unknown nobody has. */
  async testPermissions(context: RequestContext, resource: string, permissions: readonly string[]): Promise<string[]> {
    // NOT_FOUND where there is none
    await this.#policies.getPolicy(context, resource);
    return permissions.filter(
      (permission) => PERMISSIONS.has(permission) && this.#parts.rights.allows(context.principal, permission, resource),
    );
  }
}

function permissionOf(resource: string, verb: 'getIamPolicy' | 'setIamPolicy'): string {
  const named = parseResourceName(resource);
  return `bigtable.${PERMITTED_AS[named?.kind ?? 'instance']}.${verb}`;
}
