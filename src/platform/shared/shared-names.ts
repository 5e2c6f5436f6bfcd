/**
 * The names in a directory that many machines share, and how a file gets one: by link() from a temporary name, which
 * has one winner. Layout: docs/formats/shared-store.md. No machine locks anything here.
 *
 * Invariants:
 * - A name shows bytes that are durable, and `publish` resolves only when the name is durable, too. The same holds for
 *   the name that it found taken: it may be by an earlier attempt of the caller, whose answer was lost.
 * - A temporary name is its writer's alone. Nothing here touches those of others, except by their age.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { dirname, join } from 'node:path';
import { unavailable } from '../../base/index.ts';
import { Directories } from '../posix/posix-directories.ts';
import { errnoOf } from '../posix/posix-errors.ts';
import type { FileNames } from '../posix/posix-files.ts';
import type { Syscalls } from '../posix/posix-syscalls.ts';

/** How often a directory that another machine removes in between is made again. */
const MAX_LINK_ATTEMPTS = 10;
/**
 * Age at which a temporary file has no writer any more. A writer that is slower fails without effect: its name is gone
 * when it wants to link it.
 */
const MAX_TEMPORARY_AGE_MS = 24 * 3_600_000;
/** What an NFS client renames an open file to when it is deleted. */
const NFS_REMAINS = '.nfs';

/** A new file that is written. */
export const OPEN_NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;

export class SharedNames implements FileNames {
  readonly root: string;
  readonly #syscalls: Syscalls;
  readonly #directories: Directories;
  readonly #slots: string;

  constructor(root: string, syscalls: Syscalls) {
    this.root = root;
    this.#syscalls = syscalls;
    this.#directories = new Directories(root, syscalls, randomBytes(16).toString('hex'));
    this.#slots = join(root, 'slots');
  }

  /** Makes the directories that there always are, and removes temporary files of writers that are long dead. */
  async prepare(): Promise<void> {
    for (const name of ['files', 'slots', 'tmp', 'room']) await this.#directories.ensure(join(this.root, name));
    await this.#removeOldTemporaries();
  }

  temporaryPath(): string {
    return this.#directories.temporaryPath();
  }

  filePath(path: string): string {
    return this.#directories.filePath(path);
  }

  /** The directory of a row of slots. */
  rowPath(row: string): string {
    return row === '' ? this.#slots : `${this.#slots}/${row}`;
  }

  /** The file that holds the reserved room of a row. */
  roomPath(row: string): string {
    return join(this.root, 'room', row.replaceAll('/', '+'));
  }

  /**
   * Links a finished temporary file to its name, and removes the temporary name. Throws the system's error EEXIST where
   * the name is taken, and UNAVAILABLE where the name may exist without being durable.
   */
  async publish(temporary: string, path: string): Promise<void> {
    try {
      await this.#link(temporary, path);
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') await this.#makeNameDurable(path);
      throw error;
    } finally {
      // one that stays is removed when it is old
      await this.#syscalls.unlink(temporary).catch(() => undefined);
    }
    await this.#makeNameDurable(path);
  }

  /** True where there is such a name: then it is durable. */
  async isDurable(path: string): Promise<boolean> {
    if ((await this.#syscalls.status(path).catch(() => undefined)) === undefined) return false;
    await this.#makeNameDurable(path);
    return true;
  }

  /** Makes deletions in the directory durable, and removes it with those above it as far as they are empty. */
  async afterDeletion(directory: string, isDurable: boolean): Promise<void> {
    try {
      if (isDurable) await this.#directories.sync(directory);
      for (let at = directory; dirname(at) !== this.root; at = dirname(at)) {
        await this.#syscalls.rmdir(at);
        this.#directories.forget(at);
      }
    } catch (error) {
      if (!['ENOENT', 'ENOTDIR', 'ENOTEMPTY', 'EEXIST', 'EBUSY'].includes(errnoOf(error))) throw error;
    }
  }

  /** The directories under `base` that may hold a path with `prefix`, each with the paths of its files. */
  async *walk(base: string, prefix: string): AsyncIterable<{ readonly directory: string; readonly files: string[] }> {
    for await (const { directory, files } of this.#directories.walk(base, prefix)) {
      const start = directory === '' ? 0 : directory.length + 1;
      yield { directory, files: files.filter((path) => !path.startsWith(NFS_REMAINS, start)) };
    }
  }

  async #link(temporary: string, path: string): Promise<void> {
    const directory = dirname(path);
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#directories.ensure(directory);
        return await this.#syscalls.link(temporary, path);
      } catch (error) {
        // the answer to a call over a network may be that to its repetition: with a second name the link was made
        if (await this.#hasSecondName(temporary)) return;
        if (errnoOf(error) !== 'ENOENT') throw error;
        if (attempt === MAX_LINK_ATTEMPTS) throw unavailable(`${path}: ${temporary} or the directory is gone`, error);
        this.#directories.forget(directory);
      }
    }
  }

  async #hasSecondName(temporary: string): Promise<boolean> {
    const status = await this.#syscalls.status(temporary).catch(() => undefined);
    return status !== undefined && status.links > 1;
  }

  async #makeNameDurable(path: string): Promise<void> {
    try {
      await this.#directories.sync(dirname(path));
    } catch (error) {
      // it was deleted meanwhile, with its directory
      if (errnoOf(error) === 'ENOENT') return;
      throw unavailable(`${path} exists, and may not be durable`, error);
    }
  }

  /** Judged by the clock of the storage: those of machines may differ. */
  async #removeOldTemporaries(): Promise<void> {
    const mark = this.temporaryPath();
    await this.#syscalls.close(await this.#syscalls.open(mark, OPEN_NEW));
    const nowMs = (await this.#syscalls.status(mark)).modifiedMs;
    const directory = dirname(mark);
    for (const { name } of await this.#syscalls.readdir(directory)) {
      const path = join(directory, name);
      // another machine may have removed it
      const status = await this.#syscalls.status(path).catch(() => undefined);
      if (path === mark || (status && nowMs - status.modifiedMs > MAX_TEMPORARY_AGE_MS))
        await this.#syscalls.unlink(path).catch(() => undefined);
    }
  }
}
