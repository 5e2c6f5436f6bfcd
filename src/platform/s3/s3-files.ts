/**
 * The write-once files of a store on S3, one object each.
 *
 * Invariant: the promises of file-system.ts. A creation whose answer was lost is settled by the nonce that its writer
 * has given to the object. A writer holds two parts at most, whatever the size of its file.
 */
import { assert, BigtableError, Code, notFound, toBigtableError, unavailable } from '../../base/index.ts';
import { checkFilePath, type FileInfo, type FileWriter, type StoredFiles } from '../../env/index.ts';
import type { S3Objects, UploadedPart } from './s3-objects.ts';

export interface S3FilesOptions {
  /** Larger files are multipart uploads, with parts of this size. Default: 8 MiB. */
  readonly partBytes?: number;
  /** All files are multipart uploads: for the self-test. Default: false. */
  readonly alwaysMultipart?: boolean;
}

const PART_BYTES = 8 << 20;
const PREFIX = /^[A-Za-z0-9._/-]*$/;

export class S3Files implements StoredFiles {
  readonly #objects: S3Objects;
  readonly #options: Required<S3FilesOptions>;

  constructor(objects: S3Objects, { partBytes = PART_BYTES, alwaysMultipart = false }: S3FilesOptions = {}) {
    this.#objects = objects;
    this.#options = { partBytes, alwaysMultipart };
  }

  async create(path: string): Promise<FileWriter> {
    checkFilePath(path);
    return new S3FileWriter(this.#objects, path, this.#options);
  }

  async size(path: string): Promise<number> {
    checkFilePath(path);
    const found = await this.#objects.client.retried(() => this.#objects.head(objectOf(path)));
    if (found === undefined) throw missing(path);
    return found.sizeBytes;
  }

  async read(path: string, offset: number, length: number): Promise<Buffer> {
    checkFilePath(path);
    if (!(offset >= 0 && length >= 0 && Number.isSafeInteger(offset + length))) throw outOfRange(path, offset, length);
    if (length === 0) {
      if (offset > (await this.size(path))) throw outOfRange(path, offset, length);
      return Buffer.alloc(0);
    }
    const bytes = await this.#objects.client.retried(() => this.#objects.read(objectOf(path), offset, length));
    if (bytes === undefined) throw missing(path);
    if (bytes.length < length) throw outOfRange(path, offset, length);
    return bytes;
  }

  async list(prefix: string): Promise<FileInfo[]> {
    if (!PREFIX.test(prefix)) checkFilePath(prefix);
    const files: FileInfo[] = [];
    let next: string | undefined;
    do {
      const from = next === undefined ? {} : { next };
      const page = await this.#objects.client.retried(() => this.#objects.list(objectOf(prefix), from));
      for (const { path, sizeBytes } of page.objects) files.push({ path: path.slice(objectOf('').length), sizeBytes });
      next = page.next;
    } while (next !== undefined);
    // some stores list by directories
    return files.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  async delete(path: string): Promise<void> {
    checkFilePath(path);
    await this.#objects.client.retried(() => this.#objects.delete(objectOf(path)));
  }
}

class S3FileWriter implements FileWriter {
  readonly #objects: S3Objects;
  readonly #path: string;
  readonly #options: Required<S3FilesOptions>;
  readonly #nonce: string;
  /** Bytes of the part that is gathered. */
  #chunks: Buffer[] = [];
  #gatheredBytes = 0;
  #upload: string | undefined;
  /** Parts of the upload, in order; one is under way at most. */
  readonly #parts: Promise<UploadedPart>[] = [];
  #busy = false;
  #ended = false;
  #failed = false;

  constructor(objects: S3Objects, path: string, options: Required<S3FilesOptions>) {
    this.#objects = objects;
    this.#path = path;
    this.#options = options;
    this.#nonce = objects.client.random.uniqueName();
  }

  async append(bytes: Uint8Array): Promise<void> {
    assert(!this.#ended && !this.#busy, `${this.#path}: an append after the end, or two concurrent ones`);
    this.#busy = true;
    try {
      for (let at = 0; at < bytes.length; ) {
        if (this.#gatheredBytes === this.#options.partBytes) await this.#beginPart();
        const slice = bytes.subarray(at, at + this.#options.partBytes - this.#gatheredBytes);
        this.#chunks.push(Buffer.from(slice));
        this.#gatheredBytes += slice.length;
        at += slice.length;
      }
    } catch (error) {
      this.#failed = true;
      throw error;
    } finally {
      this.#busy = false;
    }
  }

  async close(): Promise<void> {
    assert(!this.#ended && !this.#busy, `${this.#path}: ended twice, or within an append`);
    if (this.#failed) {
      await this.abort();
      throw new BigtableError(Code.FAILED_PRECONDITION, `${this.#path}: an earlier write failed`);
    }
    this.#ended = true;
    const isMultipart = this.#upload !== undefined || this.#options.alwaysMultipart;
    if (!isMultipart) return this.#settled(() => this.#objects.create(this.#object, this.#chunks, this.#nonce));
    try {
      await this.#beginPart();
      const parts = await Promise.all(this.#parts);
      await this.#settled(() => this.#complete(parts));
    } catch (error) {
      await this.#abortUpload();
      throw error;
    }
  }

  async abort(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    this.#chunks = [];
    await this.#abortUpload();
  }

  get #object(): string {
    return objectOf(this.#path);
  }

  /** Uploads what was gathered, once the part before it is there. */
  async #beginPart(): Promise<void> {
    const { client } = this.#objects;
    const upload = (this.#upload ??= await client.retried(() => this.#objects.beginUpload(this.#object, this.#nonce)));
    await this.#parts.at(-1);
    const [body, number] = [this.#chunks, this.#parts.length + 1];
    this.#chunks = [];
    this.#gatheredBytes = 0;
    const part = client.retried(() => this.#objects.uploadPart(this.#object, upload, number, body));
    // its failure is seen by the next part, or by close
    part.catch(() => undefined);
    this.#parts.push(part);
  }

  async #complete(parts: readonly UploadedPart[]): Promise<boolean> {
    try {
      return await this.#objects.completeUpload(this.#object, this.#upload!, parts);
    } catch (thrown) {
      const error = toBigtableError(thrown);
      if (error.code !== Code.NOT_FOUND) throw error;
      // an earlier attempt has ended the upload: the object says how
      return false;
    }
  }

  /** Creates the object; "it exists" is judged by the nonce of what exists. */
  async #settled(create: () => Promise<boolean>): Promise<void> {
    await this.#objects.client.retried(async () => {
      if (await create()) return;
      const found = await this.#objects.head(this.#object);
      if (found === undefined) throw unavailable(`${this.#path}: the file that exists was deleted meanwhile`);
      if (found.nonce !== this.#nonce)
        throw new BigtableError(Code.ALREADY_EXISTS, `${this.#path}: the file exists already`);
    });
  }

  /** What is left of it costs space until a later start removes it. */
  async #abortUpload(): Promise<void> {
    if (this.#upload === undefined) return;
    const upload = this.#upload;
    await Promise.allSettled(this.#parts);
    await this.#objects.abortUpload(this.#object, upload).catch(() => undefined);
  }
}

function objectOf(path: string): string {
  return `files/${path}`;
}

function missing(path: string): BigtableError {
  return notFound(`${path}: no such file`);
}

function outOfRange(path: string, offset: number, length: number): BigtableError {
  return new BigtableError(Code.OUT_OF_RANGE, `${path}: bytes ${offset} to ${offset + length} are not in the file`);
}
