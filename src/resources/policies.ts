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

/** Every front door holds all policies in memory: 64 MB at most. */
const MAX_POLICIES = 2000;
const MAX_POLICY_BYTES = 32 * 1024;
/** Other clients may change the file that was read. */
const ATTEMPTS = 20;

export interface PoliciesParts {
  readonly lockService: LockService;
  readonly clock: Clock;
  readonly random: Random;
  /** What tells the resource from a later one of that name (policy-cache.ts). NOT_FOUND where there is none. */
  readonly ownerOf: (context: RequestContext, resource: NamedResource) => Promise<string>;
  /** Told of a change before its caller is. */
  readonly onChange: (resource: string) => Promise<void>;
}

interface Found extends KeptPolicy {
  /** The version of its file, which may be of another owner; 0 where there is none. */
  readonly fileVersion: number;
}

export class Policies implements PolicyStore {
  readonly #parts: PoliciesParts;

  constructor(parts: PoliciesParts) {
    this.#parts = parts;
  }

  async getPolicy(context: RequestContext, resource: string): Promise<KeptPolicy> {
    const owner = await this.#parts.ownerOf(context, namedResource(resource));
    const { bindings, version } = await this.#within(context, this.#read(resource, owner));
    return { bindings, version };
  }

  async setPolicy(context: RequestContext, resource: string, policy: Policy, version?: number): Promise<KeptPolicy> {
    checkPolicy(policy);
    const owner = await this.#parts.ownerOf(context, namedResource(resource));
    return this.#within(context, this.#set(resource, owner, policy, version));
  }

  #within<T>(context: RequestContext, work: Promise<T>): Promise<T> {
    return within(work, context, this.#parts.clock);
  }

  async #read(resource: string, owner: string): Promise<Found> {
    const path = policyPath(resource);
    const file = await this.#parts.lockService.read(path);
    if (file === undefined) return { bindings: [], version: 0, fileVersion: 0 };
    const fileVersion = file.version;
    const found = decodePolicy(path, file.contents);
    return found.owner === owner
      ? { bindings: found.bindings, version: fileVersion, fileVersion }
      : { bindings: [], version: 0, fileVersion };
  }

  async #set(resource: string, owner: string, policy: Policy, wanted: number | undefined): Promise<KeptPolicy> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const found = await this.#read(resource, owner).catch((thrown: unknown) => {
        // one that cannot be read is replaced
        if (toBigtableError(thrown).code !== Code.DATA_LOSS || wanted !== undefined) throw thrown;
        return this.#unreadable(resource);
      });
      if (wanted !== undefined && wanted !== found.version) throw changedPolicy(resource);
      const version = await this.#write(resource, owner, policy, found.fileVersion);
      if (version === undefined) continue;
      // the change stands in any case, and a watch reports it later
      await this.#parts.onChange(resource).catch(() => {});
      return { ...policy, version };
    }
    throw new BigtableError(Code.ABORTED, `the policy of ${resource} is being changed by many others: try again`);
  }

  async #unreadable(resource: string): Promise<Found> {
    const file = await this.#parts.lockService.read(policyPath(resource));
    return { bindings: [], version: 0, fileVersion: file?.version ?? 0 };
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

/** INVALID_ARGUMENT for a name of another form, and for a project: it has no policy. */
function namedResource(resource: string): NamedResource {
  const named = parseResourceName(resource);
  if (named === undefined || named.kind === 'project')
    throw invalidArgument(
      `resource ${quote(resource, 300)} must be an instance, a table, a view, a schema bundle, or TABLE/columnFamilies/FAMILY`,
      { field: 'resource' },
    );
  return named;
}
