/** The calls on rows, as far as the caller has rights on the families that they read and change. */
import { BigtableError, type ByteString, Code, quote } from '../base/index.ts';
import { inSlices, type Clock, type RequestContext } from '../env/index.ts';
import { FilterCompiler, type RowFilter } from '../filter/index.ts';
import {
  type Cell,
  columnAt,
  columnKey,
  familyEnd,
  isCellRun,
  LIMITS,
  type Mutations,
  type ReadBatch,
  type ReadModifyWriteRule,
  type RowMutations,
  type TableSchema,
} from '../model/index.ts';
import {
  AuthorizedView,
  type CheckAndMutateRequest,
  type DataService,
  type FamilyRight,
  type KeySample,
  PERMISSIONS_OF_RIGHTS,
  type ReadRequest,
  type Service,
  withoutUsage,
} from '../service/index.ts';
import { coversFamily, denied, type FamilyRights, type Rights } from './rights.ts';

/** What happens to a read of families some of which the caller may not read: it is refused, or does not see those. */
export type UnreadableFamilies = 'refuse' | 'hide';

export interface RowGuardParts {
  readonly service: Service;
  readonly rights: Rights;
  readonly clock: Clock;
  readonly unreadableFamilies: UnreadableFamilies;
}

export class RowGuard implements DataService {
  readonly #parts: RowGuardParts;
  readonly #compiler = new FilterCompiler({ limits: LIMITS.default, random: { float: () => 0 } });

  constructor(parts: RowGuardParts) {
    this.#parts = parts;
  }

  mutateRow(context: RequestContext, table: string, entry: RowMutations): Promise<void> {
    const refusal = this.#refusal(context, table, entry.mutations);
    return refusal === undefined
      ? hidden(this.#parts.service.mutateRow(context, table, entry))
      : Promise.reject(refusal);
  }

  async mutateRows(
    context: RequestContext,
    table: string,
    entries: readonly RowMutations[],
  ): Promise<readonly (BigtableError | undefined)[]> {
    const { service, clock } = this.#parts;
    const refusals: (BigtableError | undefined)[] = [];
    await inSlices(clock, entries.length, (from, to) => {
      for (let at = from; at < to; at++) refusals.push(this.#refusal(context, table, entries[at]!.mutations));
    });
    const allowed = entries.filter((_entry, at) => refusals[at] === undefined);
    if (entries.length > 0 && allowed.length === 0) return refusals;
    const answered = await service.mutateRows(context, table, allowed);
    let next = 0;
    return refusals.map((refusal) => {
      const outcome = refusal ?? answered[next++];
      return outcome && withoutUsage(outcome);
    });
  }

  readRows(context: RequestContext, request: ReadRequest): AsyncIterable<ReadBatch> {
    return this.#readFamilies(context, request, this.#on(context, 'read', request.table));
  }

  /** Their rows are of all families. */
  async sampleRowKeys(context: RequestContext, table: string): Promise<readonly KeySample[]> {
    const { authorizedView: view = '' } = context;
    const permission = view === '' ? 'bigtable.tables.sampleRowKeys' : 'bigtable.authorizedViews.sampleRowKeys';
    this.#parts.rights.check(context, permission, view === '' ? table : view);
    this.#checkAll(context, 'read', table);
    return this.#parts.service.sampleRowKeys(context, table);
  }

  async checkAndMutateRow(context: RequestContext, request: CheckAndMutateRequest): Promise<boolean> {
    const { table, predicate, whenTrue, whenFalse } = request;
    for (const mutations of [whenTrue, whenFalse]) {
      const refusal = this.#refusal(context, table, mutations);
      if (refusal !== undefined) throw refusal;
    }
    const { service } = this.#parts;
    const rights = this.#on(context, 'read', table);
    if (rights.kind === 'all') return hidden(service.checkAndMutateRow(context, request));
    const narrowed = this.#narrowed(context, table, predicate, rights, await this.#schemaOf(context, table));
    return hidden(service.checkAndMutateRow(context, { ...request, predicate: narrowed }));
  }

  async readModifyWriteRow(
    context: RequestContext,
    table: string,
    row: ByteString,
    rules: readonly ReadModifyWriteRule[],
    maxAnswerBytes?: number,
  ): Promise<readonly Cell[]> {
    const rights = this.#on(context, 'readModifyWrite', table);
    for (const { family } of rules)
      if (!coversFamily(rights, family)) throw this.#denied(context, 'readModifyWrite', table, family);
    if (rules.length === 0 && isNothing(rights)) throw this.#denied(context, 'readModifyWrite', table);
    return hidden(this.#parts.service.readModifyWriteRow(context, table, row, rules, maxAnswerBytes));
  }

  /** True where the caller has the right on every family: then the call may be passed on as it is. */
  hasAll(context: RequestContext, right: FamilyRight, table: string): boolean {
    return this.#on(context, right, table).kind === 'all';
  }

  /** PERMISSION_DENIED for a caller who has the right on some families, or on none. */
  #checkAll(context: RequestContext, right: FamilyRight, table: string): void {
    if (!this.hasAll(context, right, table)) throw this.#denied(context, right, table);
  }

  #on({ principal, authorizedView = '' }: RequestContext, right: FamilyRight, table: string): FamilyRights {
    return this.#parts.rights.onFamilies(principal, right, table, authorizedView);
  }

  /** Why the mutations are not allowed. */
  #refusal(context: RequestContext, table: string, mutations: Mutations): BigtableError | undefined {
    const rights = this.#on(context, 'write', table);
    if (rights.kind === 'all') return undefined;
    if (isNothing(rights)) return this.#denied(context, 'write', table);
    const family = familyOutside(rights, mutations);
    return family === undefined ? undefined : this.#denied(context, 'write', table, family);
  }

  async *#readFamilies(
    context: RequestContext,
    request: ReadRequest,
    rights: FamilyRights,
  ): AsyncGenerator<ReadBatch, void> {
    const { table, filter } = request;
    const narrowed = this.#narrowed(context, table, filter, rights, await this.#schemaOf(context, table));
    for await (const batch of this.#parts.service.readRows(context, { ...request, filter: narrowed })) {
      // how far a scan has come is the key of a row that may be of other families
      yield batch.scannedTo === undefined ? batch : { fragments: batch.fragments };
    }
  }

  async #schemaOf(context: RequestContext, table: string): Promise<TableSchema> {
    return this.#parts.rights.schemaOf(table) ?? (await this.#parts.service.getTable(context, table));
  }

  /** The filter, of cells of the families alone that may be read. PERMISSION_DENIED where it needs others, too. */
  #narrowed(
    context: RequestContext,
    table: string,
    filter: RowFilter | undefined,
    rights: FamilyRights,
    schema: TableSchema,
  ): RowFilter {
    const all = Object.keys(schema.families);
    const readable = all.filter((family) => coversFamily(rights, family));
    if (readable.length === 0) throw this.#denied(context, 'read', table);
    if (this.#parts.unreadableFamilies === 'refuse') {
      const { columnSpans: needed } = this.#compiler.compile(filter);
      const hidden = all.filter(
        (family) =>
          !coversFamily(rights, family) &&
          (needed ?? [{ start: '', end: undefined }]).some(
            ({ start, end }) => start < familyEnd(family) && (end === undefined || end > columnKey(family, '')),
          ),
      );
      if (hidden.length > 0) throw this.#denied(context, 'read', table, hidden.join(', '));
    }
    const families = readable.map((family) => ({ family, qualifiers: [], qualifierPrefixes: [''] }));
    return new AuthorizedView({ name: table, table, rowPrefixes: [''], families }).narrow(filter);
  }

  #denied({ principal, authorizedView = '' }: RequestContext, right: FamilyRight, table: string, families = '') {
    const { table: onTable, view } = PERMISSIONS_OF_RIGHTS[right];
    const error = denied(principal, (authorizedView === '' ? undefined : view) ?? onTable, authorizedView || table);
    if (families === '') return error;
    return new BigtableError(Code.PERMISSION_DENIED, `${error.message}, column families ${quote(families, 1000)}`);
  }
}

/** The outcome of a write of a caller who may know the sizes of some families alone, or of none. */
function hidden<T>(write: Promise<T>): Promise<T> {
  return write.catch((thrown: unknown) => {
    throw thrown instanceof BigtableError ? withoutUsage(thrown) : thrown;
  });
}

function isNothing({ kind, families }: FamilyRights): boolean {
  return kind === 'only' && families.size === 0;
}

/** A family that the mutations change and the rights do not cover; `*` where they change all families. */
function familyOutside(rights: FamilyRights, mutations: Mutations): string | undefined {
  if (!isCellRun(mutations)) {
    for (const mutation of mutations) {
      if (mutation.kind === 'deleteFromRow') return '*';
      if (!coversFamily(rights, mutation.family)) return mutation.family;
    }
    return undefined;
  }
  let checked: string | undefined;
  for (let at = mutations.from; at < mutations.from + mutations.length; at++) {
    const { family } = columnAt(mutations, at);
    if (family !== checked && !coversFamily(rights, family)) return family;
    checked = family;
  }
  return undefined;
}
