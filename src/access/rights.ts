/**
 * What a principal may do, by the policies of a resource and of those that contain it (docs/decisions/0100-rights.md).
 *
 * A policy gives; it takes nothing away that another one gives. Where neither a resource nor any that contains it has a
 * policy, everyone may do everything, unless the database has owners: they may do everything, others what policies
 * give.
 */
import { BigtableError, Code, ownOf, quote, unavailable } from '../base/index.ts';
import type { RequestContext } from '../env/index.ts';
import { type BackupSource, DEFAULT_PARENT, type Policy, type TableSchema } from '../model/index.ts';
import {
  type FamilyRight,
  parseResourceName,
  PERMISSIONS_OF_RIGHTS,
  type PolicySource,
  ROLES,
} from '../service/index.ts';

/** A caller without credentials, where the server requires none. */
const ANONYMOUS = 'anonymous';
/** Principals of an issuer may be any number: what is known of them is forgotten from time to time. */
const MAX_KNOWN = 10_000;
/** Requests may name tables of any length. */
const MAX_KEY = 1000;

/** The families of a table on which a principal has a right: those in `families`, or all others. */
export interface FamilyRights {
  readonly kind: 'all' | 'only' | 'allBut';
  readonly families: ReadonlySet<string>;
}

const ALL: FamilyRights = { kind: 'all', families: new Set() };

function notCurrent(): BigtableError {
  return unavailable(
    'this server may have missed changes of policies, since it has lost its lock: try again, or another',
  );
}

/** True where the right is there for the family. */
export function coversFamily({ kind, families }: FamilyRights, family: string): boolean {
  return kind === 'all' || (kind === 'only') === families.has(family);
}

interface Known {
  readonly changes: number;
  readonly schema: TableSchema | undefined;
  readonly rights: FamilyRights;
}

export class Rights {
  readonly #source: PolicySource;
  /** Undefined: there are none. */
  readonly #owners: ReadonlySet<string> | undefined;
  /** By right, view, table and principal. */
  readonly #known = new Map<string, Known>();

  /** `owners`: members, as in a policy. Without any, resources without a policy are everyone's. */
  constructor(source: PolicySource, owners: readonly string[]) {
    this.#source = source;
    this.#owners = owners.length > 0 ? new Set(owners) : undefined;
  }

  /**
   * True where everyone may do everything: there is nothing to check. UNAVAILABLE while policies may have changed
   * without this server knowing: every decision asks this first.
   */
  get isOpen(): boolean {
    if (!this.#source.isCurrent) throw notCurrent();
    return this.#owners === undefined && this.#source.isEmpty;
  }

  /** As known now; undefined proves nothing. */
  schemaOf(table: string): TableSchema | undefined {
    return this.#source.schemaOf(table);
  }

  /** False for a resource of no known form. */
  allows(principal: string, permission: string, resource: string): boolean {
    if (this.isOpen || this.#isOwner(principal)) return true;
    const named = parseResourceName(resource);
    if (named === undefined) return false;
    if (named.kind === 'columnFamily') {
      // the family may have a right of its own
      const right = (Object.keys(PERMISSIONS_OF_RIGHTS) as FamilyRight[]).find(
        (each) => PERMISSIONS_OF_RIGHTS[each].table === permission,
      );
      if (right !== undefined) return coversFamily(this.onFamilies(principal, right, named.table, ''), named.id);
    }
    return this.#inChain(principal, permission, named.chain) ?? this.#owners === undefined;
  }

  /** The same if the resource had that policy. */
  wouldAllow(principal: string, permission: string, resource: string, policy: Policy): boolean {
    if (this.#isOwner(principal)) return true;
    const { chain = [] } = parseResourceName(resource) ?? {};
    const replaced = policy.bindings.length > 0 ? policy : undefined;
    return this.#inChain(principal, permission, chain, { resource, policy: replaced }) ?? this.#owners === undefined;
  }

  /** PERMISSION_DENIED, naming the permission and the resource. */
  check(context: RequestContext, permission: string, resource: string): void {
    if (!this.allows(context.principal, permission, resource)) throw denied(context.principal, permission, resource);
  }

  /** Calls on the whole database are for its owners; without any, for those who may change the default instance. */
  isOperator(principal: string): boolean {
    if (this.isOpen || this.#isOwner(principal)) return true;
    if (this.#owners !== undefined) return false;
    return this.allows(principal, 'bigtable.instances.update', DEFAULT_PARENT);
  }

  /** True where the principal may read every family of the table, directly. */
  readsAll(principal: string, table: string): boolean {
    return this.onFamilies(principal, 'read', table, '').kind === 'all';
  }

  /**
   * True where the principal may read every family that the backup has. Of those that the table still has, its policies
   * say who may; of others, those of the backup's time.
   */
  readsBackup(principal: string, { schema, policies }: BackupSource): boolean {
    if (this.isOpen || this.#isOwner(principal)) return true;
    const { name: table, id, families } = schema;
    const now = this.#source.schemaOf(table);
    const areOfTable = now === undefined || now.id === id;
    const current = this.onFamilies(principal, 'read', table, '');
    const permission = PERMISSIONS_OF_RIGHTS.read.table;
    const replaced = { resource: table, policy: policies.find(({ family }) => family === undefined) };
    const onTable = this.#inChain(principal, permission, parseResourceName(table)?.chain ?? [], replaced);
    const before = this.#among(principal, permission, onTable, () =>
      policies.flatMap(({ family, bindings }) => (family === undefined ? [] : [[family, { bindings }] as const])),
    );
    return Object.values(families).every(({ name, generation }) => {
      if (areOfTable && !coversFamily(current, name)) return false;
      const living = areOfTable && now !== undefined ? ownOf(now.families, name) : undefined;
      const isLiving = living !== undefined && (living.generation ?? 0) === (generation ?? 0);
      return isLiving || coversFamily(before, name);
    });
  }

  /** The families of a table on which the principal has the right, through the view of that name or, '', directly. */
  onFamilies(principal: string, right: FamilyRight, table: string, view: string): FamilyRights {
    if (this.isOpen) return ALL;
    const key = `${right}\0${view}\0${table}\0${principal}`;
    const { changes } = this.#source;
    const schema = this.#source.schemaOf(table);
    const known = this.#known.get(key);
    if (known !== undefined && known.changes === changes && known.schema === schema) return known.rights;
    const rights = this.#onFamilies(principal, right, table, view);
    if (key.length > MAX_KEY) return rights;
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.set(key, { changes, schema, rights });
    return rights;
  }

  #onFamilies(principal: string, right: FamilyRight, table: string, view: string): FamilyRights {
    if (this.#isOwner(principal)) return ALL;
    const { table: permission, view: viewPermission } = PERMISSIONS_OF_RIGHTS[right];
    const chain = parseResourceName(table)?.chain ?? [];
    const onTable =
      view !== '' && viewPermission !== undefined
        ? this.#inChain(principal, viewPermission, [...chain, view])
        : this.#inChain(principal, permission, chain);
    return this.#among(principal, permission, onTable, () => this.#source.ofFamilies(table));
  }

  /**
   * The families on which the principal has the permission, by policies of families. `onTable`: whether a policy of the
   * table, or of what contains it, gives it; undefined: there is none.
   */
  #among(
    principal: string,
    permission: string,
    onTable: boolean | undefined,
    ofFamilies: () => Iterable<readonly [string, Policy]>,
  ): FamilyRights {
    if (onTable === true) return ALL;
    const isOpenTable = onTable === undefined && this.#owners === undefined;
    const families = new Set<string>();
    for (const [family, policy] of ofFamilies())
      if (gives(policy, principal, permission) !== isOpenTable) families.add(family);
    if (!isOpenTable) return { kind: 'only', families };
    return families.size === 0 ? ALL : { kind: 'allBut', families };
  }

  /** Undefined where none of the resources has a policy. */
  #inChain(
    principal: string,
    permission: string,
    chain: readonly string[],
    instead?: { readonly resource: string; readonly policy: Policy | undefined },
  ): boolean | undefined {
    let isGiven: boolean | undefined;
    for (const resource of chain) {
      const policy = resource === instead?.resource ? instead.policy : this.#source.find(resource);
      if (policy !== undefined) isGiven = isGiven === true || gives(policy, principal, permission);
    }
    return isGiven;
  }

  #isOwner(principal: string): boolean {
    return this.#owners !== undefined && memberNames(principal).some((name) => this.#owners!.has(name));
  }
}

function gives({ bindings }: Policy, principal: string, permission: string): boolean {
  const names = memberNames(principal);
  return bindings.some(
    ({ role, members }) =>
      ROLES.get(role)?.has(permission) === true && members.some((member) => names.includes(member)),
  );
}

/** What a policy may call the principal. */
function memberNames(principal: string): readonly string[] {
  return principal === ANONYMOUS ? ['allUsers'] : [principal, 'allUsers', 'allAuthenticatedUsers'];
}

export function denied(principal: string, permission: string, resource: string): BigtableError {
  return new BigtableError(
    Code.PERMISSION_DENIED,
    `${quote(principal, 200)} does not have the permission ${permission} on ${quote(resource, 300)}`,
  );
}
