/**
 * The backup store of a database: a directory or bucket apart from its own, where backups outlive it (setting
 * `backupStore`; docs/BACKUPS.md).
 */
import { BigtableError, checkOptions, Code } from '../base/index.ts';
import type { Backup, ExportedBackup, ListedExport } from '../model/index.ts';
import type { ExportService, Service } from '../service/index.ts';
import { CALL_OPTIONS, type CallOptions, callOptionsOf } from './calls/call-options.ts';
import type { Calls } from './calls/calls.ts';
import { askedImport, type CopyBackupOptions, ownBackup, ownExport } from './schema/backups.ts';
import { asked, textOf } from './values/input.ts';
import { fullBackupName } from './values/names.ts';

export interface ExportBackupOptions extends CallOptions {
  /** Its id in the backup store. Default: that of the backup. */
  readonly id?: string | undefined;
}

/** All calls: FAILED_PRECONDITION where the database has no backup store. */
export class BackupStore {
  readonly #calls: Calls;

  /** Made by `Database`. */
  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /**
   * Copies a backup to the store, and answers when it is there. Every block is verified: DATA_LOSS where one is
   * damaged. What is begun goes on when its caller has gone. A repetition answers the same; ALREADY_EXISTS where
   * another backup has that id in the store.
   */
  async export(backup: string, options: ExportBackupOptions = {}): Promise<ExportedBackup> {
    const [name, id, call] = asked(() => {
      checkOptions(options, { ...CALL_OPTIONS, id: 'free' }, 'export');
      const full = fullBackupName(backup, this.#calls.parent);
      const { id: wanted = full.slice(full.lastIndexOf('/') + 1) } = options;
      return [full, textOf(wanted, 'the id of an exported backup'), callOptionsOf(options)] as const;
    });
    const made = await this.#calls.write(
      (service, context) => exportsOf(service).exportBackup(context, name, id),
      call,
    );
    return ownExport(made, this.#calls.parent);
  }

  /**
   * Makes a backup of one in the store, and answers when it is ready. It has files of its own, and expires by itself.
   * ALREADY_EXISTS where there is a backup of that name; NOT_FOUND where the store has none of that id; DATA_LOSS where
   * that is damaged.
   */
  async import(id: string, backup: string, options: CopyBackupOptions = {}): Promise<Backup> {
    const [wanted, call] = asked(() => {
      const name = fullBackupName(backup, this.#calls.parent);
      const from = textOf(id, 'the id of an exported backup');
      const { nowMicros } = this.#calls;
      return [askedImport({ name, from, nowMicros }, options), callOptionsOf(options)] as const;
    });
    const made = await this.#calls.write((service, context) => exportsOf(service).importBackup(context, wanted), call);
    return ownBackup(made, this.#calls.parent);
  }

  /** By id, also those that cannot be read: of these only the id is known. */
  async list(options?: CallOptions): Promise<readonly ListedExport[]> {
    const all = await this.#calls.read((service, context) => exportsOf(service).listExports(context), options);
    return all.map((one) => ownExport(one, this.#calls.parent));
  }

  /** Also one that cannot be read. NOT_FOUND where there is none. */
  async delete(id: string, options?: CallOptions): Promise<void> {
    const wanted = asked(() => textOf(id, 'the id of an exported backup'));
    return this.#calls.write((service, context) => exportsOf(service).deleteExport(context, wanted), options);
  }
}

function exportsOf({ exports }: Service): ExportService {
  if (exports === undefined) throw new BigtableError(Code.UNIMPLEMENTED, 'there is no backup store here');
  return exports;
}
