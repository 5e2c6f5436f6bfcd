/**
 * The service: Cloud Bigtable's Data and Admin calls in the terms of the model (API: google.bigtable.v2.Bigtable,
 * google.bigtable.admin.v2.BigtableTableAdmin), and the calls of an operator (control-service.ts). The embedded library
 * and the gRPC doors use it; the client library implements it over master and tablet servers. Tables are named in full:
 * projects/P/instances/I/tables/T.
 *
 * Errors: NOT_FOUND (table, family), INVALID_ARGUMENT (form, limits), ALREADY_EXISTS, FAILED_PRECONDITION,
 * RESOURCE_EXHAUSTED, UNAVAILABLE (a write's outcome is then unknown), DATA_LOSS (CorruptionError).
 */
import type { BigtableError, ByteString } from '../base/index.ts';
import type { RequestContext } from '../env/index.ts';
import type { RowFilter } from '../filter/index.ts';
import type {
  Cell,
  ChangeStream,
  DeletedTable,
  FamilySchema,
  Granularity,
  GroupLayout,
  Mutation,
  ReadBatch,
  ReadModifyWriteRule,
  RowMutations,
  RowRange,
  TableSchema,
} from '../model/index.ts';
import type { AppProfileRules } from './app-profile-rules.ts';
import type { BackupService } from './backup-service.ts';
import type { ChangeService } from './change-service.ts';
import type { ControlService } from './control-service.ts';
import type { ExportService } from './export-service.ts';
import type { HotTabletService } from './hot-tablet-service.ts';
import type { InstanceService } from './instance-service.ts';
import type { MemoryLayerService } from './memory-layer-service.ts';
import type { OperationStore } from './operation-store.ts';
import type { PolicySource, PolicyStore } from './policy-store.ts';
import type { AuthorizedViewSource, ResourceStore } from './resource-store.ts';

export interface ReadRequest {
  readonly table: string;
  /** Undefined or empty: all rows. Any order, may overlap; each row is read once. */
  readonly ranges?: readonly RowRange[] | undefined;
  readonly filter?: RowFilter | undefined;
  /** Rows with at least one cell of output; 0 or undefined = no limit. */
  readonly rowsLimit?: number | undefined;
  readonly reversed?: boolean | undefined;
}

export interface CheckAndMutateRequest {
  readonly table: string;
  readonly row: ByteString;
  /** Undefined: any cell. */
  readonly predicate?: RowFilter | undefined;
  readonly whenTrue: readonly Mutation[];
  readonly whenFalse: readonly Mutation[];
}

export interface KeySample {
  /** The end of the rows, exclusive; '' = the end of the table. */
  readonly row: ByteString;
  /** Approximate bytes stored before `row`. */
  readonly offsetBytes: number;
}

export interface DataService {
  mutateRow(context: RequestContext, table: string, mutations: RowMutations): Promise<void>;
  /**
   * Each entry is atomic by itself. Answers by entry: undefined = done, else why not, also if the entry's form is
   * wrong. The call as a whole fails without a table, without entries, and with more mutations than a request may have.
   */
  mutateRows(
    context: RequestContext,
    table: string,
    entries: readonly RowMutations[],
  ): Promise<readonly (BigtableError | undefined)[]>;
  /** Rows in key order (or against it), each seen in one instant. Ending the iteration ends the read. */
  readRows(context: RequestContext, request: ReadRequest): AsyncIterable<ReadBatch>;
  /** Ascending; the last is the end of the table. */
  sampleRowKeys(context: RequestContext, table: string): Promise<readonly KeySample[]>;
  /** True when the predicate matched. */
  checkAndMutateRow(context: RequestContext, request: CheckAndMutateRequest): Promise<boolean>;
  /**
   * The new cells, one for each changed column. Rules apply in order; each sees the results of those before it.
   * RESOURCE_EXHAUSTED with the detail `answerBytes`, and nothing written, if the new cells take more than
   * `maxAnswerBytes` (default: any number).
   */
  readModifyWriteRow(
    context: RequestContext,
    table: string,
    row: ByteString,
    rules: readonly ReadModifyWriteRule[],
    maxAnswerBytes?: number,
  ): Promise<readonly Cell[]>;
}

export interface NewTable {
  readonly name: string;
  readonly families: readonly FamilySchema[];
  /** Rows at which the table is split from the start. */
  readonly splits: readonly ByteString[];
  readonly granularity: Granularity;
  readonly deletionProtection: boolean;
  /** Default: all families in one group. */
  readonly groups?: GroupLayout | undefined;
  /** Default: none. */
  readonly changeStream?: ChangeStream | undefined;
  readonly extra?: Readonly<Record<string, string>> | undefined;
}

export type FamilyChange =
  | { readonly kind: 'create'; readonly family: FamilySchema }
  /** Replaces the given fields and keeps the others. */
  | { readonly kind: 'update'; readonly family: FamilySchema; readonly fields: readonly ('gcRule' | 'valueType')[] }
  | { readonly kind: 'drop'; readonly name: string };

export interface TableChange {
  readonly deletionProtection?: boolean | undefined;
  /** Replaces all locality groups. */
  readonly groups?: GroupLayout | undefined;
  /** `none` ends it: the table's changes are no longer kept. */
  readonly changeStream?: ChangeStream | 'none' | undefined;
  readonly extra?: Readonly<Record<string, string>> | undefined;
}

export interface AdminService {
  createTable(context: RequestContext, table: NewTable): Promise<TableSchema>;
  /** Tables whose full name starts with `prefix` ("projects/P/instances/I/tables/"), by name; '' = all tables. */
  listTables(context: RequestContext, prefix: string): Promise<readonly TableSchema[]>;
  /** The names of those tables alone: over the API it is one call, while the schemas are one for each table. */
  listTableNames(context: RequestContext, prefix: string): Promise<readonly string[]>;
  getTable(context: RequestContext, name: string): Promise<TableSchema>;
  updateTable(context: RequestContext, name: string, change: TableChange): Promise<TableSchema>;
  /**
   * Deletes the table. True: it is kept, and can be restored for as long as the database keeps deleted tables; false
   * also where the server does not say so. `atOnce`: it is not kept; where there is no table of the name, the one that
   * was deleted last is removed.
   */
  deleteTable(context: RequestContext, name: string, atOnce?: boolean): Promise<boolean>;
  /**
   * Restores the table of that name that was deleted last, as it was: its rows, schema, policies, authorized views and
   * schema bundles. NOT_FOUND where none is kept; ALREADY_EXISTS where there is a table of the name.
   */
  undeleteTable(context: RequestContext, name: string): Promise<TableSchema>;
  /** Deleted tables that are kept, whose full name starts with `prefix`, by name, the last deletion of a name first. */
  listDeletedTables(context: RequestContext, prefix: string): Promise<readonly DeletedTable[]>;
  /** All changes or none, in order. */
  modifyFamilies(context: RequestContext, name: string, changes: readonly FamilyChange[]): Promise<TableSchema>;
  dropRowRange(context: RequestContext, name: string, range: RowRange): Promise<void>;
  generateConsistencyToken(context: RequestContext, name: string): Promise<string>;
  checkConsistency(context: RequestContext, name: string, token: string): Promise<boolean>;
}

export interface Service extends DataService, AdminService, ControlService {
  /** For the front doors of this database. Undefined where it has none. */
  readonly operations?: OperationStore | undefined;
  /** Undefined where they cannot be reached. */
  readonly backups?: BackupService | undefined;
  /** Undefined where they cannot be reached. */
  readonly exports?: ExportService | undefined;
  /** Undefined where they cannot be reached. */
  readonly changes?: ChangeService | undefined;
  /** Undefined where they cannot be reached. */
  readonly hotTablets?: HotTabletService | undefined;
  /** Undefined where they cannot be reached. */
  readonly memoryLayers?: MemoryLayerService | undefined;
  /** Undefined where they cannot be reached. */
  readonly instances?: InstanceService | undefined;
  /** For the front doors of this database. Undefined where it has none. */
  readonly resources?: ResourceStore | undefined;
  readonly authorizedViews?: AuthorizedViewSource | undefined;
  /** For the front doors of this database. Undefined: everything is allowed. */
  readonly appProfiles?: AppProfileRules | undefined;
  /** Undefined where they cannot be reached. */
  readonly policies?: PolicyStore | undefined;
  /** For the guards of this database's front doors. */
  readonly policySource?: PolicySource | undefined;
}
