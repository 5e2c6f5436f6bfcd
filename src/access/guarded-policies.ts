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
import type { Gate } from './gate.ts';

export class GuardedPolicies implements PolicyStore {
  readonly #policies: PolicyStore;
  readonly #gate: Gate;

  constructor(policies: PolicyStore, gate: Gate) {
    this.#policies = policies;
    this.#gate = gate;
  }

  async getPolicy(context: RequestContext, resource: string): Promise<KeptPolicy> {
    this.#gate.check(context, 'GetIamPolicy', permissionOf(resource, 'getIamPolicy'), resource);
    return this.#policies.getPolicy(context, resource);
  }

  /** FAILED_PRECONDITION where the caller would lose the right to do so again: nobody else might have it. */
  async setPolicy(context: RequestContext, resource: string, policy: Policy, version?: number): Promise<KeptPolicy> {
    checkPolicy(policy);
    const permission = permissionOf(resource, 'setIamPolicy');
    return this.#gate.change(context, 'SetIamPolicy', permission, resource, async () => {
      if (!this.#gate.rights.wouldAllow(context.principal, permission, resource, policy))
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
      (permission) => PERMISSIONS.has(permission) && this.#gate.rights.allows(context.principal, permission, resource),
    );
  }
}

function permissionOf(resource: string, verb: 'getIamPolicy' | 'setIamPolicy'): string {
  const named = parseResourceName(resource);
  return `bigtable.${PERMITTED_AS[named?.kind ?? 'instance']}.${verb}`;
}
