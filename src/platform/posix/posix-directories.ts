/**
 * The directories under a POSIX file system's root: makes them durable with their parents, walks and empties them.
 *
 *   files/   write-once files by their paths        tmp/   what is being written; emptied at every start
 *   logs/    one directory a log, by its path
 *
 * Invariant: a name put into a directory by `publish` outlives a loss of power, and so do all directories above it.
 */
import { constants } from 'node:fs';
import { dirname, join } from 'node:path';
import { checkFilePath } from '../../env/index.ts';
import { errnoOf } from './posix-errors.ts';
import type { Syscalls } from './posix-syscalls.ts';

export class Directories {
  readonly root: string;
  readonly #syscalls: Syscalls;
  readonly #temporaryPrefix: string;
  readonly #files: string;
  #temporaries = 0;
  /** Directories that are known to be durable, or being made so. */
  readonly #made = new Map<string, Promise<void>>();

  /** `name`: of this owner, never reused, so that two owners' temporaries never meet. */
  constructor(root: string, syscalls: Syscalls, name: string) {
    this.root = root;
    this.#files = join(root, 'files');
    this.#syscalls = syscalls;
    this.#temporaryPrefix = name;
  }

  filePath(path: string): string {
    return path === '' ? this.#files : `${this.#files}/${path}`;
  }

  logPath(path: string): string {
    return join(this.root, 'logs', path);
  }

  temporaryPath(): string {
    return join(this.root, 'tmp', `${this.#temporaryPrefix}-${this.#temporaries++}`);
  }

  /** Makes the directory and those above it up to the root, durably. Later calls for the same directory do nothing. */
  ensure(directory: string): Promise<void> {
    let made = this.#made.get(directory);
    if (!made) {
      made = this.#make(directory).catch((error: unknown) => {
        this.#made.delete(directory);
        throw error;
      });
      this.#made.set(directory, made);
    }
    return made;
  }

  /** Makes `ensure` look again at the directory and those above it: another process may have removed them. */
  forget(directory: string): void {
    for (let at = directory; at !== this.root; at = dirname(at)) this.#made.delete(at);
  }

  async #make(directory: string): Promise<void> {
    if (directory === this.root) return;
    const parent = dirname(directory);
    await this.ensure(parent);
    await this.#syscalls.mkdir(directory).catch((error: unknown) => {
      if (errnoOf(error) !== 'EEXIST') throw error;
    });
    // also where it exists already: an earlier owner may have died between mkdir and sync
    await this.sync(parent);
  }

  async sync(directory: string): Promise<void> {
    const fd = await this.#syscalls.open(directory, constants.O_RDONLY);
    try {
      await this.#syscalls.sync(fd);
    } finally {
      await this.#syscalls.close(fd);
    }
  }

  /** Links a finished temporary file to its name; EEXIST where that is taken. Removes the temporary in either case. */
  async publish(temporary: string, path: string): Promise<void> {
    await this.ensure(dirname(path));
    await this.link(temporary, path);
    await this.sync(dirname(path));
  }

  /** The same in an existing directory, without making the name durable. When this fails there is no such name. */
  async link(temporary: string, path: string): Promise<void> {
    try {
      await this.#syscalls.link(temporary, path);
    } finally {
      // a temporary that stays is removed at the next start
      await this.#syscalls.unlink(temporary).catch(() => undefined);
    }
  }

  /** Removes a directory or file with all that is in it; nothing happens where there is none. */
  async removeTree(path: string, isDirectory = true): Promise<void> {
    try {
      if (!isDirectory) return await this.#syscalls.unlink(path);
      for (const entry of await this.#syscalls.readdir(path))
        await this.removeTree(join(path, entry.name), entry.isDirectory);
      await this.#syscalls.rmdir(path);
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error;
    }
  }

  /**
   * Removes empty directories below `directory`, which deletions leave. Must be the first call: it would invalidate the
   * memory of `ensure`.
   */
  async removeEmpty(directory: string): Promise<void> {
    for (const entry of await this.#syscalls.readdir(directory)) {
      if (!entry.isDirectory) continue;
      const below = join(directory, entry.name);
      await this.removeEmpty(below);
      await this.#syscalls.rmdir(below).catch((error: unknown) => {
        if (errnoOf(error) !== 'ENOTEMPTY' && errnoOf(error) !== 'EEXIST') throw error;
      });
    }
  }

  /**
   * The directories below `base` that may hold a path with `prefix`, relative to it, each with the paths of its files.
   */
  async *walk(
    base: string,
    prefix: string,
  ): AsyncIterable<{ readonly directory: string; readonly files: readonly string[] }> {
    const slash = prefix.lastIndexOf('/');
    if (slash >= 0) checkFilePath(prefix.slice(0, slash));
    const pending = [prefix.slice(0, slash + 1)];
    for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
      const entries = await this.#syscalls.readdir(join(base, directory)).catch((error: unknown) => {
        if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return [];
        throw error;
      });
      const files: string[] = [];
      for (const entry of entries) {
        const path = `${directory}${entry.name}`;
        if (!entry.isDirectory) files.push(path);
        else if (path.startsWith(prefix)) pending.push(`${path}/`);
      }
      yield { directory: directory.slice(0, -1), files };
    }
  }
}
