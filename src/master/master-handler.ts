/** Answers the calls of a master: passes each to the part that carries it out. */
import { type ByteString, toBigtableError, unavailable } from '../base/index.ts';
import type { CallHandler, Env, RequestContext } from '../env/index.ts';
import {
  callHandler,
  checkAddressed,
  type Handlers,
  isDeposed,
  type MasterCalls,
  type TabletRef,
} from '../protocol/index.ts';
import { ownCalls } from './own-calls.ts';
import type { Backups } from './backups.ts';
import type { ExportedBackups } from './exported-backups.ts';
import type { SweepResult } from './sweep.ts';
import type { TableAdmin } from './table-admin.ts';

export interface MasterHandlerOptions {
  readonly env: Env;
  /** The master's, as servers address it. */
  readonly name: string;
  readonly tables: TableAdmin;
  /** Without deadline. */
  readonly context: () => RequestContext;
  /** Throws while METADATA was not served yet. */
  readonly checkIsReady: () => void;
  readonly backups: Backups;
  readonly exports: ExportedBackups;
  readonly confirmDoorFiles: (paths: readonly string[], context: RequestContext) => Promise<void>;
  readonly merge: (table: string, row: ByteString) => Promise<void>;
  /** Counts what tables with a quota take. */
  readonly countUsage: (context: RequestContext) => Promise<void>;
  readonly sweep: () => Promise<SweepResult>;
  /** Files may be left that no row refers to. */
  readonly sweepLater: () => void;
  /** The server has split a tablet, and serves these now. */
  readonly onSplit: (server: string, tablets: readonly TabletRef[]) => void;
  /** A later master has taken the place of this one. */
  readonly onDeposed: () => void;
}

export function masterHandler(options: MasterHandlerOptions): CallHandler {
  const { stream, call } = callHandler<MasterCalls>(handlersOf(options));
  return {
    stream,
    call: (method, message, context) =>
      call(method, message, context).catch((thrown: unknown) => {
        if (!isDeposed(toBigtableError(thrown))) throw thrown;
        options.onDeposed();
        throw unavailable('another master has taken the place of this one', thrown);
      }),
  };
}

function handlersOf(options: MasterHandlerOptions): Handlers<MasterCalls> {
  const { env, name, tables, backups, exports, context: ownContext, checkIsReady, merge, sweep, sweepLater } = options;
  /** Calls that read or change METADATA are refused until it is served for the first time. */
  const whenReady =
    <T, A>(call: (message: T, context: RequestContext) => Promise<A>) =>
    async (message: T, { deadlineMs }: RequestContext): Promise<A> => {
      checkIsReady();
      return call(message, { ...ownContext(), deadlineMs });
    };
  return {
    // its repetition would not be known as one
    createTable: whenReady((message) => tables.createTable(message, ownContext())),
    updateTable: whenReady((message, context) => tables.updateTable(message, context)),
    deleteTable: whenReady(async ({ name: table, atOnce = false }, context) => {
      const isKept = await tables.deleteTable(table, atOnce, context);
      if (!isKept) sweepLater();
      return isKept ? { isKept } : {};
    }),
    undeleteTable: whenReady(({ name: table }, context) => tables.undeleteTable(table, context)),
    modifyFamilies: whenReady((message, context) => tables.modifyFamilies(message.name, message.changes, context)),
    setQuota: whenReady(async (message, context) => {
      const schema = await tables.setQuota(message, context);
      await options.countUsage(context);
      return schema;
    }),
    mergeTablets: whenReady(async (message) => {
      await merge(message.name, message.row);
      return undefined;
    }),
    createBackup: whenReady(async (message, context) => {
      await backups.create(message, context);
      return undefined;
    }),
    deleteBackup: whenReady(async ({ name: backup }, context) => {
      await backups.delete(backup, context);
      sweepLater();
      return undefined;
    }),
    restoreTable: whenReady((message, context) => backups.restore(message, context)),
    exportBackup: whenReady(({ backup, id }) => backups.export(backup, id, ownContext())),
    listExports: async () => {
      const all = await exports.list();
      return {
        exports: all.filter((one) => one.state === 'ready'),
        unreadable: all.filter(({ state }) => state === 'unreadable').map(({ id }) => id),
      };
    },
    importBackup: whenReady(async (message, context) => {
      await backups.import(message, context).catch((thrown: unknown) => {
        // files that were copied are listed by no row
        sweepLater();
        throw thrown;
      });
      return undefined;
    }),
    deleteExport: whenReady(async ({ id }) => {
      await exports.delete(id);
      return undefined;
    }),
    tabletSplit: async (message) => {
      checkAddressed(message, name);
      options.onSplit(message.server, message.tablets);
      return undefined;
    },
    filesLeft: async (message) => {
      checkAddressed(message, name);
      sweepLater();
      return undefined;
    },
    confirmDoorFiles: async ({ paths }, { deadlineMs }) => {
      await options.confirmDoorFiles(paths, { ...ownContext(), deadlineMs });
      return undefined;
    },
    ...ownCalls(env),
    sweep: whenReady(() => sweep()),
  };
}
