/** The policies of all resources, as this process knows them. */
import type { FamilySchema, Policy, TableSchema } from '../model/index.ts';
import { ownOf, toBigtableError } from '../base/index.ts';
import { type NamedResource, parseResourceName, type PolicySource } from '../service/index.ts';
import { FollowedFiles, type FollowedFilesParts } from './followed-files.ts';
import { decodePolicy, type PolicyFile, policyPath } from './policy-file.ts';

export interface PolicyCacheParts extends FollowedFilesParts {
  /** The table of that name, as known now. */
  readonly schemaOf: (table: string) => TableSchema | undefined;
  /** False while changes that have returned may be unknown here. */
  readonly isCurrent: () => boolean;
}

/** What tells a resource from a later one of its name: later ones have greater numbers. */
interface Owner {
  /** The id of the table that the resource is, or is in; '' for others. */
  readonly tableId: string;
  readonly generation: number;
}

/** What closes a resource: as if the policy had no members. Its owner is later than every other. */
const UNREADABLE = {
  file: { owner: '', bindings: [], write: '' },
  owner: { tableId: '\uffff', generation: Number.POSITIVE_INFINITY },
} as const;

/** The owner of a resource in that table, or of the family. */
export function ownerText({ id }: TableSchema, family?: FamilySchema): string {
  return family === undefined ? id : `${id}/${family.generation ?? 0}`;
}

export class PolicyCache implements PolicySource {
  readonly #parts: PolicyCacheParts;
  /** By full name of the resource. */
  readonly #policies: FollowedFiles<{ readonly file: PolicyFile; readonly owner: Owner }>;

  constructor(parts: PolicyCacheParts) {
    this.#parts = parts;
    this.#policies = new FollowedFiles(parts, policyPath(''), ({ path, contents }) => {
      try {
        const file = decodePolicy(path, contents);
        const [tableId = '', generation = '0'] = file.owner.split('/');
        return { file, owner: { tableId, generation: Number(generation) } };
      } catch (thrown) {
        const error = toBigtableError(thrown).message;
        parts.logger.error('a policy cannot be read: it gives nothing until it is set again', { path, error });
        return UNREADABLE;
      }
    });
  }

  start(): Promise<void> {
    return this.#policies.start();
  }

  stop(): void {
    this.#policies.stop();
  }

  readAgain(): Promise<void> {
    return this.#policies.readAgain();
  }

  /** Reads the file of that path again if it is one of these. */
  changed(path: string): Promise<void> {
    return this.#policies.changed(path);
  }

  get isCurrent(): boolean {
    return this.#parts.isCurrent();
  }

  get isEmpty(): boolean {
    return this.#policies.isEmpty;
  }

  get changes(): number {
    return this.#policies.changes;
  }

  schemaOf(table: string): TableSchema | undefined {
    return this.#parts.schemaOf(table);
  }

  find(resource: string): Policy | undefined {
    const found = this.#policies.get(resource);
    if (found === undefined) return undefined;
    const named = parseResourceName(resource);
    return named !== undefined && this.#isOfEarlier(found.owner, named) ? undefined : found.file;
  }

  ofFamilies(table: string): ReadonlyMap<string, Policy> {
    const prefix = `${table}/columnFamilies/`;
    const found = new Map<string, Policy>();
    for (const resource of this.#policies.names()) {
      const policy = resource.startsWith(prefix) ? this.find(resource) : undefined;
      if (policy !== undefined) found.set(resource.slice(prefix.length), policy);
    }
    return found;
  }

  /**
   * True where a policy is of a table or family that was deleted. Where the policy is of a later one than this process
   * knows, or it knows none, the policy is in force: otherwise rows could be read that it keeps from a caller.
   */
  #isOfEarlier(owner: Owner, { kind, table, id }: NamedResource): boolean {
    const schema = table === '' ? undefined : this.#parts.schemaOf(table);
    if (schema === undefined) return false;
    if (owner.tableId !== schema.id) return owner.tableId < schema.id;
    const family = kind === 'columnFamily' ? ownOf(schema.families, id) : undefined;
    return family !== undefined && owner.generation < (family.generation ?? 0);
  }
}
