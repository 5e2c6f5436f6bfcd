/**
 * Calls that one server passes on to another as bytes, because that one has their rows
 * (docs/decisions/0047-calls-passed-on-as-bytes.md). The door of the API reads and writes the bytes; the client library
 * knows the servers of rows. On both sides they meet here.
 *
 * All of it is plain cloneable data. The context that travels next to a call has its deadline, cancellation and
 * principal, which the server that took the call has authenticated.
 */
import { BigtableError, type ByteString, Code } from '../base/index.ts';
import type { PullStream, RequestContext } from '../env/index.ts';
import type { RowRange } from '../model/index.ts';
import type { AppProfileRules } from './app-profile-rules.ts';
import type { AuthorizedViewSource, ResourceStore } from './resource-store.ts';
import type { AdminService, DataService } from './service.ts';

/** A change of one row. */
export interface RawWrite {
  readonly method: 'mutateRow' | 'checkAndMutateRow' | 'readModifyWriteRow';
  readonly table: string;
  readonly row: ByteString;
  /** As in `DataService.readModifyWriteRow`. */
  readonly maxAnswerBytes: number | undefined;
  /** The request as the client sent it. It names the same table and row. */
  readonly request: Uint8Array;
}

/** A read of one range. */
export interface RawRead {
  readonly table: string;
  readonly range: RowRange;
  /** The form in which the client takes rows, in the door's own encoding. */
  readonly form: number;
  /** The request as the client sent it. It names the same table, and this range alone. */
  readonly request: Uint8Array;
}

/** A message of the answer to a read, and how far the read has come with it. */
export interface ReadPart {
  /** In one buffer or several. */
  readonly message: Uint8Array | readonly Uint8Array[];
  /** Whole rows in all messages so far. */
  readonly rows: number;
  /** No row up to this one, in the order of the read, is still to come; undefined at the beginning. */
  readonly lastRow: ByteString | undefined;
  /** True when the message ends inside the row after `lastRow`. */
  readonly isInsideRow: boolean;
}

/** Passes calls on. */
export interface RawCallPasser {
  /** True where another server is known to have the row. A call is decoded here otherwise. */
  isElsewhere(table: string, row: ByteString): boolean;
  /** The answer's bytes; undefined where nothing was done: no other server is known, or it has the row no longer. */
  write(context: RequestContext, write: RawWrite): Promise<Uint8Array | undefined>;
  /**
   * Undefined where no other server is known to have the range. Where the read fails so that `canReadOn` is true, the
   * rest of it is to be decoded here.
   */
  read(context: RequestContext, read: RawRead): PullStream<ReadPart> | undefined;
}

/** Carries out calls that were passed on. INTERNAL, and nothing done, where bytes name another table or row. */
export interface RawCallHandler {
  write(context: RequestContext, write: RawWrite): Promise<Uint8Array>;
  read(context: RequestContext, read: RawRead): PullStream<ReadPart>;
}

/** The calls that read and change single rows, and the schema that some of them need. */
export type RowService = Pick<DataService, 'mutateRow' | 'checkAndMutateRow' | 'readModifyWriteRow' | 'readRows'> &
  Pick<AdminService, 'getTable'> & {
    /** Undefined where another server has checked them. */
    readonly appProfiles?: AppProfileRules | undefined;
    readonly resources?: ResourceStore | undefined;
    readonly authorizedViews?: AuthorizedViewSource | undefined;
  };

/** True when a read that failed so may continue after its last whole row: its tablet has moved, or its server ended. */
export function canReadOn(thrown: unknown): boolean {
  return thrown instanceof BigtableError && thrown.code === Code.UNAVAILABLE && thrown.retry;
}
