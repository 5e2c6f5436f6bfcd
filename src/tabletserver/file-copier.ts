/**
 * Copies SSTables to the backup store, and from there, as the master requests
 * (docs/decisions/0111-exported-backups.md).
 *
 * Invariant: a copy has one name and is of one file. So a call that is repeated joins the first, or finds what that has
 * written, and two servers that were requested to make the same copy write the same bytes.
 */
import { assert, Code, invalidArgument, Places, toBigtableError } from '../base/index.ts';
import { type Env, openBackupStore, readPieces, type StoredFiles, writePieces } from '../env/index.ts';
import { FILES_DIRECTORY, type FileCopy, type TabletServerCalls } from '../protocol/index.ts';
import { BlockCache, isImportedPath, SsTable } from '../sstable/index.ts';

/** A file is read and written in pieces of this size, by COPIES_AT_ONCE copies, which bounds the memory. */
const PIECE_BYTES = 2 << 20;
const COPIES_AT_ONCE = 4;

type Wanted = Pick<TabletServerCalls['copyFile']['message'], 'direction' | 'path' | 'copyPath'>;

export class FileCopier {
  readonly #env: Env;
  /** By the path of the copy. */
  readonly #underWay = new Map<string, Promise<FileCopy>>();
  readonly #places = new Places(COPIES_AT_ONCE);

  constructor(env: Env) {
    this.#env = env;
  }

  copy(wanted: Wanted): Promise<FileCopy> {
    const { copyPath } = wanted;
    let copying = this.#underWay.get(copyPath);
    if (copying === undefined) {
      copying = this.#places.take(() => this.#copy(wanted)).finally(() => this.#underWay.delete(copyPath));
      this.#underWay.set(copyPath, copying);
    }
    return copying;
  }

  async #copy({ direction, path, copyPath }: Wanted): Promise<FileCopy> {
    const { fileSystem, codecs } = this.#env;
    if (direction === 'import' && !(copyPath.startsWith(FILES_DIRECTORY) && isImportedPath(copyPath)))
      throw invalidArgument(`${copyPath} is no path of an imported file`);
    const store = await openBackupStore(this.#env);
    if (direction === 'export') await this.#verify(path);
    const [source, target] = direction === 'export' ? [fileSystem, store] : [store, fileSystem];
    const sum = new Sum(codecs.checksum);
    try {
      await writePieces(target, copyPath, withSum(readPieces(source, path, PIECE_BYTES), sum));
    } catch (thrown) {
      if (toBigtableError(thrown).code !== Code.ALREADY_EXISTS) throw thrown;
      // an earlier call wrote it
      return sumOf(target, copyPath, new Sum(codecs.checksum));
    }
    return sum.result();
  }

  /** DATA_LOSS where a block is damaged: a backup that cannot be read is found while there is another. */
  async #verify(path: string): Promise<void> {
    const { metrics } = this.#env;
    const table = await SsTable.open({ ...this.#env, path, cache: new BlockCache({ limitBytes: 0, metrics }) });
    try {
      await table.verify();
    } finally {
      table.close();
    }
  }
}

class Sum {
  readonly #checksum: Env['codecs']['checksum'];
  #sizeBytes = 0;
  #value = 0;

  constructor(checksum: Env['codecs']['checksum']) {
    this.#checksum = checksum;
  }

  add(piece: Uint8Array): void {
    this.#value = this.#checksum(piece, this.#value);
    this.#sizeBytes += piece.length;
  }

  result(): FileCopy {
    assert(this.#value >= 0, 'a checksum is not negative');
    return { sizeBytes: this.#sizeBytes, checksum: this.#value };
  }
}

async function* withSum(pieces: AsyncIterable<Buffer>, sum: Sum): AsyncIterable<Buffer> {
  for await (const piece of pieces) {
    sum.add(piece);
    yield piece;
  }
}

async function sumOf(files: StoredFiles, path: string, sum: Sum): Promise<FileCopy> {
  for await (const piece of readPieces(files, path, PIECE_BYTES)) sum.add(piece);
  return sum.result();
}
