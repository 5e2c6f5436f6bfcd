/**
 * Instances in files of the lock service, which every client of the database shares
 * (docs/decisions/0097-instances.md).
 *
 * An instance has a file from its creation, or from its first change, until it is deleted; it may exist without one.
 * Invariant: a file changes only from the version that the change was computed from.
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
import { decodeDeletionMark, deletionPath, backupPath, decodeSchema, schemaPath } from '../metadata/index.ts';
import {
  DEFAULT_INSTANCE,
  DEFAULT_PROJECT,
  type Instance,
  instanceOfTable,
  uncreatedInstance,
} from '../model/index.ts';
import {
  changedInstance,
  checkInstanceChange,
  checkInstanceName,
  checkNewInstance,
  type InstanceChange,
  type InstanceService,
  newInstance,
  type NewInstance,
} from '../service/index.ts';
import { policyPath } from './policy-file.ts';
import { removePolicies } from './remove-policies.ts';
import { decodeInstance, encodeInstance, type InstanceFile, instancePath } from './instance-file.ts';

/** Names of writes that a file keeps: of those while an answer is lost and its call is sent again. */
const KEPT_WRITES = 20;
/** Other clients may change the file that was read. */
const ATTEMPTS = 20;
const MAX_INSTANCES = 1000;
/** The largest file: some 500 app profiles of usual descriptions. */
const MAX_FILE_BYTES = 256 * 1024;

export interface InstancesParts {
  readonly lockService: LockService;
  readonly clock: Clock;
  readonly random: Random;
  /** Deletes the table of that name immediately; where there is none, that which was deleted last and is kept. */
  readonly deleteTable: (context: RequestContext, name: string) => Promise<unknown>;
  /** Called with the paths of files that were changed. The caller of the change waits for it. */
  readonly onChange: (context: RequestContext, paths: readonly string[]) => Promise<void>;
}

interface Found extends InstanceFile {
  /** The version of its file; 0 where it has none. */
  readonly version: number;
}

export class Instances implements InstanceService {
  readonly #parts: InstancesParts;

  constructor(parts: InstancesParts) {
    this.#parts = parts;
  }

  async getInstance(context: RequestContext, name: string): Promise<Instance> {
    checkInstanceName(name);
    return (await this.#within(context, this.#find(name))).instance;
  }

  listInstances(context: RequestContext, project: string): Promise<readonly Instance[]> {
    checkInstanceName(`${prefixOf(project)}x`);
    return this.#within(context, this.#list(project));
  }

  async createInstance(context: RequestContext, instance: NewInstance): Promise<Instance> {
    checkNewInstance(instance);
    const created = await this.#within(context, this.#create(instance));
    await this.#confirm(context, instance.name);
    return created;
  }

  async changeInstance(context: RequestContext, name: string, change: InstanceChange): Promise<Instance> {
    checkInstanceChange(name, change);
    if (change.kind === 'deleteCluster')
      await this.#within(context, this.#checkHasNoBackup(name, `/clusters/${change.id}/`));
    const changed = await this.#within(context, this.#change(name, change));
    await this.#parts.onChange(context, [instancePath(name)]);
    return changed;
  }

  async deleteInstance(context: RequestContext, name: string): Promise<void> {
    checkInstanceName(name);
    try {
      await this.#within(context, this.#find(name));
    } catch (thrown) {
      // an earlier call may have removed it, and not learned that all front doors know
      if (toBigtableError(thrown).code === Code.NOT_FOUND) await this.#confirm(context, name);
      throw thrown;
    }
    if (await this.#within(context, this.#isDefault(name)))
      throw new BigtableError(
        Code.FAILED_PRECONDITION,
        `instance ${name} is the default one, which always exists: delete its tables instead`,
      );
    const tables = await this.#within(context, this.#tables(name));
    const kept = tables.find(({ deletionProtection }) => deletionProtection);
    if (kept !== undefined)
      throw new BigtableError(
        Code.FAILED_PRECONDITION,
        `instance ${name} cannot be deleted: table ${kept.name} is protected against deletion`,
      );
    await this.#within(context, this.#checkHasNoBackup(name, '/clusters/'));
    const names = [...tables.map((table) => table.name), ...(await this.#within(context, this.#keptTables(name)))];
    for (const table of names) {
      try {
        await this.#parts.deleteTable(context, table);
      } catch (thrown) {
        // deleted since they were listed
        if (toBigtableError(thrown).code !== Code.NOT_FOUND) throw thrown;
      }
    }
    const removed = await this.#within(context, this.#remove(name));
    await this.#parts.onChange(context, removed);
  }

  /** A front door may still have the policy of an instance of that name that was deleted. */
  #confirm(context: RequestContext, name: string): Promise<void> {
    return this.#parts.onChange(context, [instancePath(name), policyPath(name)]);
  }

  #within<T>(context: RequestContext, work: Promise<T>): Promise<T> {
    return within(work, context, this.#parts.clock);
  }

  async #find(name: string): Promise<Found> {
    const found = await this.#read(name);
    if (found !== undefined) return found;
    if ((await this.#hasTable(name)) || (await this.#isDefault(name)))
      return { instance: uncreatedInstance(name), writes: [], version: 0 };
    throw notFound(`instance ${name} does not exist: CreateInstance creates one, and so does the first table in it`);
  }

  async #read(name: string): Promise<Found | undefined> {
    const path = instancePath(name);
    const file = await this.#parts.lockService.read(path);
    return file && { ...decodeInstance(path, file.contents), version: file.version };
  }

  async #list(project: string): Promise<readonly Instance[]> {
    const { lockService } = this.#parts;
    const prefix = prefixOf(project);
    const byName = new Map<string, Instance>();
    for (const { path, contents } of await listFiles(lockService, instancePath(prefix))) {
      const { instance } = decodeInstance(path, contents);
      byName.set(instance.name, instance);
    }
    // schemas may be many: only the first table of each instance is read
    for (let after = schemaPath(prefix); ; ) {
      const [file] = await lockService.list(schemaPath(prefix), after);
      if (file === undefined) break;
      const name = instanceOfTable(file.path.slice(schemaPath('').length));
      if (!byName.has(name)) byName.set(name, uncreatedInstance(name));
      after = schemaPath(`${name}0`);
    }
    const defaultName = prefix + DEFAULT_INSTANCE;
    if (!byName.has(defaultName) && (project === DEFAULT_PROJECT || byName.size === 0))
      byName.set(defaultName, uncreatedInstance(defaultName));
    return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The default instance exists in its project, and in each project that has no other. */
  async #isDefault(name: string): Promise<boolean> {
    const [, project, , id] = name.split('/');
    if (id !== DEFAULT_INSTANCE) return false;
    if (project === DEFAULT_PROJECT) return true;
    const prefix = prefixOf(project!);
    const { lockService } = this.#parts;
    const files = await Promise.all([lockService.list(instancePath(prefix)), lockService.list(schemaPath(prefix))]);
    return files.every((page) => page.length === 0);
  }

  async #hasTable(name: string): Promise<boolean> {
    return (await this.#parts.lockService.list(schemaPath(`${name}/`))).length > 0;
  }

  /** A backup is in a cluster: FAILED_PRECONDITION where one is left in what would be deleted. */
  async #checkHasNoBackup(instance: string, within: string): Promise<void> {
    const [backup] = await this.#parts.lockService.list(backupPath(instance + within));
    if (backup === undefined) return;
    const name = backup.path.slice(backupPath('').length);
    throw new BigtableError(Code.FAILED_PRECONDITION, `backup ${name} is there: delete the backups first`);
  }

  async #tables(name: string) {
    const files = await listFiles(this.#parts.lockService, schemaPath(`${name}/`));
    return files.map(({ path, contents }) => decodeSchema(path, contents));
  }

  /** The names of tables that were deleted and are kept: without their instance they cannot be restored. */
  async #keptTables(name: string): Promise<string[]> {
    const files = await listFiles(this.#parts.lockService, deletionPath());
    const marks = files.map(({ path, contents }) => decodeDeletionMark(path, contents));
    return marks.filter((mark) => mark.kept && mark.name.startsWith(`${name}/tables/`)).map((mark) => mark.name);
  }

  async #create(given: NewInstance): Promise<Instance> {
    const { lockService, clock } = this.#parts;
    const exists = new BigtableError(Code.ALREADY_EXISTS, `instance ${given.name} exists already`);
    if (await this.#find(given.name).then(() => true, isNotFound)) throw exists;
    if ((await listFiles(lockService, instancePath(''))).length >= MAX_INSTANCES)
      throw new BigtableError(Code.RESOURCE_EXHAUSTED, `there are ${MAX_INSTANCES} instances, and may be no more`);
    const instance = newInstance(given, clock.nowMicros());
    // what was left of one that was deleted
    await removePolicies(this.#parts, given.name);
    if (!(await this.#write(instance, { version: 0, writes: [] }))) throw exists;
    return instance;
  }

  async #change(name: string, change: InstanceChange): Promise<Instance> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const found = await this.#find(name);
      const changed = changedInstance(found.instance, change);
      if (await this.#write(changed, found)) return changed;
    }
    throw new BigtableError(Code.ABORTED, `instance ${name} is being changed by many others: try again`);
  }

  /** False where the file is of another version by now, and this write has not made one of those since. */
  async #write(instance: Instance, { version, writes }: Omit<Found, 'instance'>): Promise<boolean> {
    const write = this.#parts.random.uniqueName();
    const contents = encodeInstance({ instance, writes: [...writes.slice(1 - KEPT_WRITES), write] });
    if (contents.length > MAX_FILE_BYTES)
      throw new BigtableError(
        Code.RESOURCE_EXHAUSTED,
        `instance ${instance.name}, its clusters and app profiles take ${contents.length} bytes; the limit is ${MAX_FILE_BYTES}`,
      );
    try {
      await writeSettled(this.#parts, instancePath(instance.name), contents, { version });
      return true;
    } catch (thrown) {
      isRefused(thrown);
      return (await this.#read(instance.name))?.writes.includes(write) ?? false;
    }
  }

  /** Returns the paths of the files that it has removed. */
  async #remove(name: string): Promise<readonly string[]> {
    const removed = [...(await removePolicies(this.#parts, name)), instancePath(name)];
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const found = await this.#read(name);
      if (found === undefined) return removed;
      try {
        await removeSettled(this.#parts, instancePath(name), { version: found.version });
        return removed;
      } catch (thrown) {
        isRefused(thrown);
      }
    }
    throw new BigtableError(Code.ABORTED, `instance ${name} is being changed by many others: try again`);
  }
}

function prefixOf(project: string): string {
  return `projects/${project}/instances/`;
}

/** False for ABORTED; throws any other error. */
function isRefused(thrown: unknown): false {
  if (toBigtableError(thrown).code !== Code.ABORTED) throw thrown;
  return false;
}

/** False for NOT_FOUND; throws any other error. */
function isNotFound(thrown: unknown): false {
  if (toBigtableError(thrown).code !== Code.NOT_FOUND) throw thrown;
  return false;
}

/** The first cluster of an instance, by its id. */
export async function firstClusterOf(lockService: Pick<LockService, 'read'>, name: string): Promise<string> {
  const path = instancePath(name);
  const file = await lockService.read(path);
  const { clusters } = file === undefined ? uncreatedInstance(name) : decodeInstance(path, file.contents).instance;
  assert(clusters.length > 0, 'an instance has a cluster');
  return clusters[0]!.id;
}
