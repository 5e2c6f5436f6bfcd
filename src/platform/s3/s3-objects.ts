/**
 * What a store needs of a bucket's objects: conditional creation, ranges, lists, deletion, and multipart uploads. One
 * attempt each, unless it says otherwise; `path` is that in the store.
 */
import { BigtableError, Code, unavailable } from '../../base/index.ts';
import type { S3Client } from './s3-client.ts';
import { element, elements, s3Error } from './s3-errors.ts';

export interface ListedObject {
  /** Path in the store. */
  readonly path: string;
  readonly sizeBytes: number;
}

export interface ObjectPage {
  readonly objects: readonly ListedObject[];
  /** Continues the list; undefined on the last page. */
  readonly next: string | undefined;
}

export interface UploadedPart {
  readonly number: number;
  readonly tag: string;
}

/** Whose object it is: that of one writer. */
const NONCE_HEADER = 'x-amz-meta-edubba-nonce';
const ONLY_NEW = { 'if-none-match': '*' };
const CONTENT_RANGE = /^bytes (\d+)-(\d+)\//;

export class S3Objects {
  readonly client: S3Client;

  constructor(client: S3Client) {
    this.client = client;
  }

  /** False, if there is one, perhaps by an earlier attempt. */
  async create(path: string, body: readonly Uint8Array[], nonce?: string): Promise<boolean> {
    const key = this.client.keyOf(path);
    const headers = nonce === undefined ? ONLY_NEW : { ...ONLY_NEW, [NONCE_HEADER]: nonce };
    return (await this.client.send({ method: 'PUT', key, headers, body, answers: [200, 412] })).status === 200;
  }

  /** Undefined where there is none. */
  async head(path: string): Promise<{ readonly sizeBytes: number; readonly nonce: string | undefined } | undefined> {
    const { status, headers } = await this.client.send({
      method: 'HEAD',
      key: this.client.keyOf(path),
      answers: [200, 404],
    });
    if (status === 404) {
      // it has no body: only a GET tells a missing object from a missing bucket or user
      if ((await this.read(path, 0, 1)) !== undefined) throw unavailable(`${path} was created meanwhile`);
      return undefined;
    }
    return { sizeBytes: Number(headers['content-length']), nonce: headers[NONCE_HEADER] as string | undefined };
  }

  /** Up to `length` bytes, 1 or more, from `offset`: fewer where the object ends. Undefined where there is none. */
  async read(path: string, offset: number, length: number): Promise<Buffer | undefined> {
    const range = `bytes=${offset}-${offset + length - 1}`;
    const answers = [206, 200, 416, 404];
    const { status, headers, body } = await this.client.send({
      method: 'GET',
      key: this.client.keyOf(path),
      headers: { range },
      answers,
      maxBytes: length,
    });
    if (status === 404) return undefined;
    if (status === 416) return Buffer.alloc(0);
    if (status === 200) {
      const where = this.client.address.text;
      const message = `${where} cannot hold a database: it breaks the promise that a range of an object can be read`;
      throw new BigtableError(Code.FAILED_PRECONDITION, message);
    }
    const [, first, last] = CONTENT_RANGE.exec(headers['content-range'] ?? '') ?? [];
    if (Number(first) !== offset || Number(last) - offset + 1 !== body.length)
      throw new BigtableError(Code.INTERNAL, `${path}: ${range} was answered with "${headers['content-range']}"`);
    return body;
  }

  /** A page of the objects whose path begins with `prefix`, in the order of the store. */
  async list(prefix: string, page: { after?: string; next?: string; size?: number }): Promise<ObjectPage> {
    const base = this.client.keyOf('');
    const query: Record<string, string> = { 'list-type': '2', prefix: this.client.keyOf(prefix) };
    if (page.next !== undefined) query['continuation-token'] = page.next;
    else if (page.after !== undefined) query['start-after'] = this.client.keyOf(page.after);
    if (page.size !== undefined) query['max-keys'] = String(page.size);
    const { body } = await this.client.send({ method: 'GET', key: '', query, answers: [200] });
    const xml = body.toString('utf8');
    const objects = elements(xml, 'Contents').map((entry) => ({
      path: (element(entry, 'Key') ?? '').slice(base.length),
      sizeBytes: Number(element(entry, 'Size')),
    }));
    const next = element(xml, 'IsTruncated') === 'true' ? element(xml, 'NextContinuationToken') : undefined;
    return { objects, next };
  }

  async delete(path: string): Promise<void> {
    await this.client.send({ method: 'DELETE', key: this.client.keyOf(path), answers: [200, 204, 404] });
  }

  /** Begins a multipart upload; its identity. */
  async beginUpload(path: string, nonce: string): Promise<string> {
    const query = { uploads: '' };
    const headers = { [NONCE_HEADER]: nonce };
    const key = this.client.keyOf(path);
    const { body } = await this.client.send({ method: 'POST', key, query, headers, answers: [200] });
    const upload = element(body.toString('utf8'), 'UploadId');
    if (upload === undefined) throw new BigtableError(Code.INTERNAL, `${path}: an upload began without an identity`);
    return upload;
  }

  async uploadPart(path: string, upload: string, number: number, body: readonly Uint8Array[]): Promise<UploadedPart> {
    const query = { partNumber: String(number), uploadId: upload };
    const { headers } = await this.client.send({
      method: 'PUT',
      key: this.client.keyOf(path),
      query,
      body,
      answers: [200],
    });
    return { number, tag: headers.etag ?? '' };
  }

  /** Makes the object of its parts. False, if there is one, perhaps by an earlier attempt. */
  async completeUpload(path: string, upload: string, parts: readonly UploadedPart[]): Promise<boolean> {
    const list = parts.map(({ number, tag }) => `<Part><PartNumber>${number}</PartNumber><ETag>${tag}</ETag></Part>`);
    const xml = `<CompleteMultipartUpload>${list.join('')}</CompleteMultipartUpload>`;
    const { status, body } = await this.client.send({
      method: 'POST',
      key: this.client.keyOf(path),
      query: { uploadId: upload },
      headers: ONLY_NEW,
      body: [Buffer.from(xml, 'latin1')],
      answers: [200, 412],
    });
    const answer = body.toString('utf8');
    // the status may be sent before the parts are put together
    if (status === 200 && element(answer, 'Code') !== undefined)
      throw s3Error(this.client.address, `completing ${path}`, 500, answer);
    return status === 200;
  }

  async abortUpload(path: string, upload: string): Promise<void> {
    const query = { uploadId: upload };
    await this.client.send({ method: 'DELETE', key: this.client.keyOf(path), query, answers: [200, 204, 404] });
  }

  /** The paths and identities of uploads under way that began before `beforeMs`, real time; a page of them. */
  async oldUploads(beforeMs: number): Promise<{ readonly path: string; readonly upload: string }[]> {
    const base = this.client.keyOf('');
    const query = { uploads: '', prefix: this.client.keyOf('files/') };
    const { body } = await this.client.send({ method: 'GET', key: '', query, answers: [200] });
    return elements(body.toString('utf8'), 'Upload')
      .filter((entry) => Date.parse(element(entry, 'Initiated') ?? '') < beforeMs)
      .map((entry) => ({
        path: (element(entry, 'Key') ?? '').slice(base.length),
        upload: element(entry, 'UploadId') ?? '',
      }));
  }
}
