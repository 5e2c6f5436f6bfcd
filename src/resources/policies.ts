/**
 * Policies in files of the lock service, which every client of the database shares
 * (docs/decisions/0100-rights.md).
 *
 * A file names the owner of its policy, which tells the table or family from a later one of the same name: the policy
 * of one that was deleted is not seen, and overwritten.
 */
import { BigtableError, Code, invalidArgument, quote, toBigtableError } from '../base/index.ts';
import {
  type Clock,
  listFiles,
  type LockService,
  type Random,
  removeSettled,
  type RequestContext,
  type SmallFile,
  within,
  writeSettled,
} from '../env/index.ts';
import type { Policy } from '../model/index.ts';
import {
  changedPolicy,
  checkPolicy,
  type KeptPolicy,
  type NamedResource,
  parseResourceName,
  type PolicyStore,
} from '../service/index.ts';
import { decodePolicy, encodePolicy, policyPath } from './policy-file.ts';
import { removePolicies } from './remove-policies.ts';

/** Every front door holds all policies in memory: 64 MB at most. */
const MAX_POLICIES = 2000;
const MAX_POLICY_BYTES = 32 * 1024;
/** Other clients may change the file that was read. */
const ATTEMPTS = 20;
const NO_POLICY: KeptPolicy = { bindings: [], version: 0 };

export interface PoliciesParts {
  readonly lockService: LockService;
  readonly clock: Clock;
  readonly random: Random;
  /** What tells the resource from a later one of that name (policy-cache.ts). NOT_FOUND where there is none. */
  readonly ownerOf: (context: RequestContext, resource: NamedResource) => Promise<string>;
  /** Called with the paths of files that were changed. The caller of the change waits for it. */
  readonly onChange: (context: RequestContext, paths: readonly string[]) => Promise<void>;
}

export class Policies implements PolicyStore {
  readonly #parts: PoliciesParts;

  constructor(parts: PoliciesParts) {
    this.#parts = parts;
  }

  async getPolicy(context: RequestContext, resource: string): Promise<KeptPolicy> {
    const owner = await this.#parts.ownerOf(context, namedResource(resource));
    return policyIn(await this.#within(context, this.#file(resource)), owner);
  }

  async setPolicy(context: RequestContext, resource: string, policy: Policy, version?: number): Promise<KeptPolicy> {
    checkPolicy(policy);
    const owner = await this.#parts.ownerOf(context, namedResource(resource));
    const set = await this.#within(context, this.#set(resource, owner, policy, version));
    await this.#parts.onChange(context, [policyPath(resource)]);
    return set;
  }

  /** The resource was deleted: removes its policy. */
  async forget(context: RequestContext, resource: string): Promise<void> {
    const removed = await this.#within(context, removePolicies(this.#parts, resource));
    if (removed.length > 0) await this.#parts.onChange(context, removed);
  }

  #within<T>(context: RequestContext, work: Promise<T>): Promise<T> {
    return within(work, context, this.#parts.clock);
  }

  #file(resource: string): Promise<SmallFile | undefined> {
    return this.#parts.lockService.read(policyPath(resource));
  }

  async #set(resource: string, owner: string, policy: Policy, wanted: number | undefined): Promise<KeptPolicy> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const file = await this.#file(resource);
      // without a wanted version any file is replaced, also one that cannot be read
      if (wanted !== undefined && wanted !== policyIn(file, owner).version) throw changedPolicy(resource);
      const version = await this.#write(resource, owner, policy, file?.version ?? 0);
      if (version === undefined) continue;
      return { ...policy, version };
    }
    throw new BigtableError(Code.ABORTED, `the policy of ${resource} is being changed by many others: try again`);
  }

  /** The new version, 0 of no policy; undefined where the file is of another version by now. */
  async #write(resource: string, owner: string, { bindings }: Policy, version: number): Promise<number | undefined> {
    const path = policyPath(resource);
    try {
      if (bindings.length === 0) {
        if (version > 0) await removeSettled(this.#parts, path, { version });
        return 0;
      }
      const contents = encodePolicy({ owner, bindings, write: this.#parts.random.uniqueName() });
      if (contents.length > MAX_POLICY_BYTES)
        throw invalidArgument(`a policy may take ${MAX_POLICY_BYTES} bytes, not ${contents.length}`, {
          field: 'policy',
        });
      if (version === 0) await this.#checkNumber();
      return await writeSettled(this.#parts, path, contents, { version });
    } catch (thrown) {
      if (toBigtableError(thrown).code === Code.ABORTED) return undefined;
      throw thrown;
    }
  }

  async #checkNumber(): Promise<void> {
    if ((await listFiles(this.#parts.lockService, policyPath(''))).length >= MAX_POLICIES)
      throw new BigtableError(Code.RESOURCE_EXHAUSTED, `there are ${MAX_POLICIES} policies, and may be no more`);
  }
}

/** The policy in the file, if it is one of that owner. DATA_LOSS where it cannot be read. */
function policyIn(file: SmallFile | undefined, owner: string): KeptPolicy {
  if (file === undefined) return NO_POLICY;
  const found = decodePolicy(file.path, file.contents);
  return found.owner === owner ? { bindings: found.bindings, version: file.version } : NO_POLICY;
}

/** INVALID_ARGUMENT for a name of another form, and for a project: it has no policy. */
function namedResource(resource: string): NamedResource {
  const named = parseResourceName(resource);
  if (named === undefined || named.kind === 'project')
    throw invalidArgument(
      `resource ${quote(resource, 300)} must be an instance, a table, a view, a schema bundle, a backup, or TABLE/columnFamilies/FAMILY`,
      { field: 'resource' },
    );
  return named;
}
