/**
 * Resources that are kept as they are, in files of the lock service (docs/decisions/0098-kept-resources.md).
 *
 * A file names the owner of its resource, which tells the parent from a later one of the same name: what is left of a
 * parent that was deleted is not seen, and overwritten.
 */
import { assert, BigtableError, Code, notFound, toBigtableError } from '../base/index.ts';
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
import {
  changedSinceRead,
  type KeptResource,
  MAX_RESOURCE_BYTES,
  type ResourceKind,
  type ResourceStore,
} from '../service/index.ts';
import { removePolicies } from './remove-policies.ts';
import { decodeResource, encodeResource, type ResourceFile, resourcePath } from './resource-file.ts';

/** The most resources of a parent, so that a list has a few megabytes. */
const MAX_OF_PARENT: Readonly<Record<ResourceKind, number>> = {
  authorizedViews: 100,
  logicalViews: 100,
  materializedViews: 100,
  schemaBundles: 10,
};
const KINDS = Object.keys(MAX_OF_PARENT) as ResourceKind[];

export interface ResourcesParts {
  readonly lockService: LockService;
  readonly clock: Clock;
  readonly random: Random;
  /** What tells the parent of that name from a later one. NOT_FOUND where there is none. */
  readonly ownerOf: (context: RequestContext, kind: ResourceKind, parent: string) => Promise<string>;
  /** Called with the paths of files that were changed. The caller of the change waits for it. */
  readonly onChange: (context: RequestContext, paths: readonly string[]) => Promise<void>;
}

interface Found extends ResourceFile {
  readonly version: number;
}

export class Resources implements ResourceStore {
  readonly #parts: ResourcesParts;

  constructor(parts: ResourcesParts) {
    this.#parts = parts;
  }

  async create(context: RequestContext, kind: ResourceKind, name: string, contents: Uint8Array): Promise<KeptResource> {
    const parent = parentOf(kind, name);
    const owner = await this.#parts.ownerOf(context, kind, parent);
    const found = await this.#within(context, this.#read(kind, name));
    const exists = new BigtableError(Code.ALREADY_EXISTS, `${name} exists already`);
    if (found?.owner === owner) throw exists;
    const max = MAX_OF_PARENT[kind];
    if ((await this.#within(context, this.#list(kind, parent, owner))).length >= max)
      throw new BigtableError(Code.RESOURCE_EXHAUSTED, `${parent} has ${max} ${kind}, and may have no more`);
    const made = await this.#within(context, this.#write(kind, { name, owner, contents }, found?.version ?? 0));
    if (made === undefined) throw exists;
    await this.#parts.onChange(context, [resourcePath(kind, name)]);
    return made;
  }

  async find(context: RequestContext, kind: ResourceKind, name: string): Promise<KeptResource> {
    const owner = await this.#parts.ownerOf(context, kind, parentOf(kind, name));
    const found = await this.#within(context, this.#read(kind, name));
    if (found?.owner !== owner) throw notFound(`${name} does not exist`);
    return keptOf(found);
  }

  async list(context: RequestContext, kind: ResourceKind, parent: string): Promise<readonly KeptResource[]> {
    const owner = await this.#parts.ownerOf(context, kind, parent);
    return (await this.#within(context, this.#list(kind, parent, owner))).map(keptOf);
  }

  async replace(
    context: RequestContext,
    kind: ResourceKind,
    { name, contents, version }: KeptResource,
  ): Promise<KeptResource> {
    const owner = await this.#parts.ownerOf(context, kind, parentOf(kind, name));
    const made = await this.#within(context, this.#write(kind, { name, owner, contents }, version));
    if (made === undefined) throw changedSinceRead(name);
    await this.#parts.onChange(context, [resourcePath(kind, name)]);
    return made;
  }

  async remove(context: RequestContext, kind: ResourceKind, name: string, version: number): Promise<void> {
    const removed = await this.#within(context, this.#remove(kind, name, version)).catch((thrown: unknown) => {
      throw toBigtableError(thrown).code === Code.ABORTED ? changedSinceRead(name) : thrown;
    });
    await this.#parts.onChange(context, removed);
  }

  async removeAllOf(context: RequestContext, parent: string): Promise<void> {
    const removed = await this.#within(context, this.#removeAllOf(parent));
    if (removed.length > 0) await this.#parts.onChange(context, removed);
  }

  #within<T>(context: RequestContext, work: Promise<T>): Promise<T> {
    return within(work, context, this.#parts.clock);
  }

  async #read(kind: ResourceKind, name: string): Promise<Found | undefined> {
    const path = resourcePath(kind, name);
    const file = await this.#parts.lockService.read(path);
    return file && { ...decodeResource(path, file.contents), version: file.version };
  }

  async #list(kind: ResourceKind, parent: string, owner: string): Promise<Found[]> {
    const files = await listFiles(this.#parts.lockService, resourcePath(kind, `${parent}/${kind}/`));
    return files
      .map(({ path, contents, version }) => ({ ...decodeResource(path, contents), version }))
      .filter((found) => found.owner === owner);
  }

  /** Undefined where the file is of another version by now. */
  async #write(
    kind: ResourceKind,
    fields: Omit<ResourceFile, 'write'>,
    version: number,
  ): Promise<KeptResource | undefined> {
    const { name, contents } = fields;
    const max = MAX_RESOURCE_BYTES[kind];
    if (contents.length > max)
      throw new BigtableError(Code.INVALID_ARGUMENT, `${name} takes ${contents.length} bytes; the limit is ${max}`);
    const file = encodeResource({ ...fields, write: this.#parts.random.uniqueName() });
    try {
      const written = await writeSettled(this.#parts, resourcePath(kind, name), file, { version });
      return { name, contents, version: written };
    } catch (thrown) {
      if (toBigtableError(thrown).code === Code.ABORTED) return undefined;
      throw thrown;
    }
  }

  /** Returns the paths of the files that it has removed. */
  async #remove(kind: ResourceKind, name: string, version: number): Promise<readonly string[]> {
    const path = resourcePath(kind, name);
    // one that stays keeps its policy
    if ((await this.#parts.lockService.read(path))?.version !== version) throw changedSinceRead(name);
    const removed = await removePolicies(this.#parts, name);
    await removeSettled(this.#parts, path, { version });
    return [...removed, path];
  }

  async #removeAllOf(parent: string): Promise<readonly string[]> {
    const removed = await removePolicies(this.#parts, parent);
    for (const kind of KINDS) {
      for (const { path, version } of await listFiles(this.#parts.lockService, resourcePath(kind, `${parent}/`))) {
        await removeSettled(this.#parts, path, { version });
        removed.push(path);
      }
    }
    return removed;
  }
}

function parentOf(kind: ResourceKind, name: string): string {
  const at = name.lastIndexOf(`/${kind}/`);
  assert(at > 0, 'a resource is named after its parent and its kind');
  return name.slice(0, at);
}

function keptOf({ name, contents, version }: Found): KeptResource {
  return { name, contents, version };
}
