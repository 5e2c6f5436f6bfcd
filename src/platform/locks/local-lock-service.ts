/**
 * The lock service of a process that owns its directory: sessions, locks and ephemeral files live in memory, lasting
 * files in the file system, one write-once file a change. Format and reasons: docs/formats/lock-service.md.
 *
 * Invariants: of the files of one path the one with the greatest version is valid, and it is durable before its change
 * is answered; a file is removed only when a later one of its path is durable, or when it is a deletion with nothing
 * left to hide. Numbers (versions, epochs, sessions) are reserved durably before the first of them is used.
 */
import { createHash } from 'node:crypto';
import { assert, BigtableError, Code, CorruptionError, unavailable } from '../../base/index.ts';
import {
  type FileInfo,
  type FileSystem,
  InProcessLockService,
  type LastingFile,
  type LockService,
  type LockStorage,
} from '../../env/index.ts';
import { decodeLockFile, encodeLockFile, type LockFile, LockFileKind } from './lock-file-format.ts';

/** Lets the caller own `lock-service/` of the file system; exactly one process may have it open. */
export async function openLocalLockService(fileSystem: FileSystem): Promise<LockService> {
  const { storage, files } = await LockFiles.open(fileSystem);
  return new InProcessLockService(storage, files);
}

export const FILES = 'lock-service/files/';
export const NUMBERS = 'lock-service/numbers/';
/** Numbers in a reservation: 2^33 reservations reach the end of the safe integers. */
const NUMBERS_PER_RESERVATION = 2 ** 20;
const READS_AT_ONCE = 32;
const NAME = /^([0-9a-f]{32})-([0-9a-f]{16})$/;
const NO_BYTES = new Uint8Array(0);

class LockFiles implements LockStorage {
  readonly #fileSystem: FileSystem;
  /** The greatest version of each path that is kept, deletions too. */
  readonly #versions: Map<string, number>;
  #endOfNumbers: number;
  /** The reason why every change is refused: stored and answered state may differ. */
  #failure: unknown;

  private constructor(fileSystem: FileSystem, versions: Map<string, number>, endOfNumbers: number) {
    this.#fileSystem = fileSystem;
    this.#versions = versions;
    this.#endOfNumbers = endOfNumbers;
  }

  /** Reads the valid files and deletes the outdated ones. */
  static async open(fileSystem: FileSystem): Promise<{ storage: LockFiles; files: LastingFile[] }> {
    const { newest, outdated } = sortVersions(await fileSystem.list(FILES));
    const kept: LockFile[] = [];
    for (let at = 0; at < newest.length; at += READS_AT_ONCE) {
      kept.push(...(await Promise.all(newest.slice(at, at + READS_AT_ONCE).map((file) => readFile(fileSystem, file)))));
    }
    const endOfNumbers = await readNumbers(fileSystem);
    const hidden = new Set(outdated.map(hashIn));
    const versions = new Map<string, number>();
    for (const { kind, path, version } of kept) {
      // a deletion outlives what it hides by one opening at least, so that no crash brings back what was deleted
      if (kind === LockFileKind.deletion && !hidden.has(hashOf(path))) await fileSystem.delete(nameOf(path, version));
      else versions.set(path, version);
    }
    for (const name of outdated) await fileSystem.delete(name);
    const end = Math.max(endOfNumbers, ...kept.map(({ version }) => version + 1));
    return {
      storage: new LockFiles(fileSystem, versions, end),
      files: kept.filter(({ kind }) => kind === LockFileKind.contents),
    };
  }

  async put({ path, contents, version }: LastingFile): Promise<void> {
    await this.#replace({ kind: LockFileKind.contents, path, version, contents });
  }

  async remove(path: string, version: number): Promise<void> {
    await this.#replace({ kind: LockFileKind.deletion, path, version, contents: NO_BYTES });
  }

  async reserve(): Promise<{ from: number; to: number }> {
    const from = this.#endOfNumbers;
    const to = from + NUMBERS_PER_RESERVATION;
    assert(to <= Number.MAX_SAFE_INTEGER, 'the lock service has numbers left');
    await this.#create(numbersName(to), { kind: LockFileKind.numbers, path: '', version: to, contents: NO_BYTES });
    this.#endOfNumbers = to;
    await this.#deleteOutdated(numbersName(from));
    return { from, to };
  }

  async #replace(file: LockFile): Promise<void> {
    const before = this.#versions.get(file.path);
    assert(before === undefined || before < file.version, `version ${file.version} of ${file.path} follows ${before}`);
    await this.#create(nameOf(file.path, file.version), file);
    this.#versions.set(file.path, file.version);
    if (before !== undefined) await this.#deleteOutdated(nameOf(file.path, before));
  }

  async #create(name: string, file: LockFile): Promise<void> {
    if (this.#failure)
      throw unavailable(`${name}: an earlier change of the lock service failed midway; open it again`, this.#failure);
    try {
      const writer = await this.#fileSystem.create(name);
      await writer.append(encodeLockFile(file));
      await writer.close();
    } catch (error) {
      await this.#undo(name, error);
      throw error;
    }
  }

  /** A change that failed must not show after a restart. */
  async #undo(name: string, error: unknown): Promise<void> {
    // a name that was never used before exists: another process changes this directory
    if (error instanceof BigtableError && error.code === Code.ALREADY_EXISTS) this.#failure = error;
    else {
      await this.#fileSystem.delete(name).catch(() => {
        this.#failure = error;
      });
    }
  }

  /** A file that stays when this fails is not valid, and the next opening deletes it. */
  async #deleteOutdated(name: string): Promise<void> {
    await this.#fileSystem.delete(name).catch(() => {});
  }
}

/** The newest file of each path, and the names of the files that it outdates. */
export function sortVersions(found: readonly FileInfo[]): { newest: FileInfo[]; outdated: string[] } {
  const newest = new Map<string, FileInfo>();
  const outdated: string[] = [];
  // listed by name, so the versions of a path come in their order
  for (const file of found) {
    const hash = hashIn(file.path);
    const before = newest.get(hash);
    if (before) outdated.push(before.path);
    newest.set(hash, file);
  }
  return { newest: [...newest.values()], outdated };
}

export async function readFile(fileSystem: FileSystem, { path: name, sizeBytes }: FileInfo): Promise<LockFile> {
  const file = decodeLockFile(name, await fileSystem.read(name, 0, sizeBytes));
  if (file.kind === LockFileKind.numbers || nameOf(file.path, file.version) !== name) {
    throw new CorruptionError(
      name,
      20,
      `the file is of version ${file.version} of path ${JSON.stringify(file.path)}, which has another name`,
    );
  }
  return file;
}

/** The end of the numbers reserved so far. Deletes every reservation but the greatest. */
async function readNumbers(fileSystem: FileSystem): Promise<number> {
  const found = await fileSystem.list(NUMBERS);
  const last = found.pop();
  if (!last) return 1;
  const { kind, version } = decodeLockFile(last.path, await fileSystem.read(last.path, 0, last.sizeBytes));
  if (kind !== LockFileKind.numbers || numbersName(version) !== last.path)
    throw new CorruptionError(last.path, 20, `reserves numbers up to ${version}`);
  for (const { path } of found) await fileSystem.delete(path);
  return version;
}

function nameOf(path: string, version: number): string {
  return `${FILES}${hashOf(path)}-${hex(version)}`;
}

export function numbersName(end: number): string {
  return `${NUMBERS}${hex(end)}`;
}

/** Paths hold any character and may be longer than a file's name, so their files are named by 128 bits of SHA-256. */
function hashOf(path: string): string {
  return createHash('sha256').update(path, 'utf8').digest('hex').slice(0, 32);
}

function hashIn(name: string): string {
  const hash = NAME.exec(name.slice(FILES.length))?.[1];
  if (hash === undefined) throw new CorruptionError(name, 0, 'not the name of a lock service file');
  return hash;
}

function hex(version: number): string {
  return version.toString(16).padStart(16, '0');
}
