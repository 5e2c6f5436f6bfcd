/**
 * The backup store of a process, by the setting `backupStore`. It is opened, and proven, when a backup is first
 * exported or imported: a store that is not there does not keep the database from starting.
 */
import { resolve, sep } from 'node:path';
import { BigtableError, Code } from '../../base/index.ts';
import type { StoredFiles } from '../../env/index.ts';
import type { SharedStore } from '../../platform/index.ts';
import { oneCallFiles } from './one-call-files.ts';
import { isBucket } from './store-address.ts';

/** Files are read from beginning to end, a few at a time. */
const MAX_OPEN_FILES = 4;

export interface BackupStoreOptions {
  /** A directory, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME. */
  readonly address: string;
  /** The identity of the store of the database's own files, where it is one that machines share. */
  readonly ownIdentity?: string | undefined;
  /** The directory of the database's own files. */
  readonly ownDirectory?: string | undefined;
}

interface OpenStore {
  readonly store: SharedStore;
  readonly files: StoredFiles;
}

export class BackupStore {
  readonly #options: BackupStoreOptions;
  #opening: Promise<OpenStore> | undefined;

  constructor(options: BackupStoreOptions) {
    this.#options = options;
  }

  /** Fails as the store's adapter does, and is tried again then. */
  readonly open = async (): Promise<StoredFiles> => {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return (await this.#opening).files;
  };

  async #open(): Promise<OpenStore> {
    const { address, ownIdentity, ownDirectory } = this.#options;
    if (ownDirectory !== undefined && !isBucket(address) && isInside(resolve(address), resolve(ownDirectory)))
      throw new BigtableError(
        Code.FAILED_PRECONDITION,
        `the backup store ${address} is in the directory of the database: exported backups are to outlive that`,
      );
    // most processes need no second store
    const { openStore } = await import('./store.ts');
    const store = await openStore(address, { maxOpenFiles: MAX_OPEN_FILES });
    const { fileSystem } = store;
    if (store.identity !== ownIdentity)
      return { store, files: isBucket(address) ? fileSystem : oneCallFiles(fileSystem) };
    await store.close();
    throw new BigtableError(
      Code.FAILED_PRECONDITION,
      `the backup store ${address} is the store of the database itself: exported backups are to outlive that`,
    );
  }

  async close(): Promise<void> {
    // where it could not be opened there is nothing to close
    const opened = await this.#opening?.catch(() => undefined);
    await opened?.store.close();
  }
}

/** Undefined where the process has none. */
export function backupStoreOf(
  address: string | undefined,
  own: Omit<BackupStoreOptions, 'address'>,
): BackupStore | undefined {
  return address === undefined ? undefined : new BackupStore({ address, ...own });
}

function isInside(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory + sep);
}
