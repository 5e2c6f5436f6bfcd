/**
 * A store with S3's API, as far as Edubba uses it, in memory: for tests that need answers to get lost, refusals, and
 * broken promises. It checks no signatures; `npm run test:stores` tries those with a store of others.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * What a request comes to: `unanswered`: it takes effect, and the connection breaks; `failed`: the connection breaks
 * before; `busy`: 503 SlowDown; `cut`: the answer breaks off; `silent`: nothing happens any more.
 */
export type S3Fate = 'answered' | 'unanswered' | 'failed' | 'busy' | 'cut' | 'silent';

export interface S3DoubleOptions {
  /** Drawn for each request, by its method, path with query, range, and nonce. */
  readonly fate?: (request: string) => S3Fate;
  /** A promise that is broken. */
  readonly breaks?: 'conditions' | 'conditions of uploads' | 'ranges' | 'lists';
  /** Answers each request so; undefined: it is served. */
  readonly refusal?: () => { readonly status: number; readonly code: string } | undefined;
}

interface StoredObject {
  readonly bytes: Buffer;
  readonly nonce: string | undefined;
}

interface Upload {
  readonly key: string;
  readonly nonce: string | undefined;
  readonly parts: Map<number, Buffer>;
}

interface Answer {
  readonly status: number;
  readonly body?: Buffer | string;
  readonly headers?: Record<string, string>;
}

const NONCE = 'x-amz-meta-edubba-nonce';
const PAGE_SIZE = 1000;

export class S3Double {
  readonly objects = new Map<string, StoredObject>();
  readonly uploads = new Map<string, Upload>();
  readonly counts: Record<S3Fate, number> = { answered: 0, unanswered: 0, failed: 0, busy: 0, cut: 0, silent: 0 };
  fate: (request: string) => S3Fate;
  readonly #options: S3DoubleOptions;
  readonly #server: Server;
  #nextUpload = 1;

  private constructor(options: S3DoubleOptions) {
    this.#options = options;
    this.fate = options.fate ?? (() => 'answered');
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(options: S3DoubleOptions = {}): Promise<S3Double> {
    const double = new S3Double(options);
    await new Promise<void>((resolve) => double.#server.listen(0, '127.0.0.1', resolve));
    return double;
  }

  address(prefix = 'db'): string {
    return `s3://bucket/${prefix}?endpoint=http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const range = request.headers.range ?? '';
    const fate = this.fate(`${request.method} ${request.url} ${range} ${request.headers[NONCE] ?? ''}`);
    this.counts[fate]++;
    if (fate === 'silent') return;
    if (fate === 'failed') return void request.socket.destroy();
    const answer = fate === 'busy' ? refused(503, 'SlowDown') : this.#answer(request, Buffer.concat(parts));
    if (fate === 'unanswered') return void request.socket.destroy();
    const body = Buffer.from(answer.body ?? '');
    const length = answer.headers?.['content-length'] ?? String(body.length);
    response.writeHead(answer.status, { ...answer.headers, 'content-length': length });
    if (fate === 'cut') {
      response.write(body.subarray(0, body.length / 2));
      return void setImmediate(() => request.socket.destroy());
    }
    response.end(request.method === 'HEAD' ? undefined : body);
  }

  #answer(request: IncomingMessage, body: Buffer): Answer {
    const { method = '', headers } = request;
    const url = new URL(request.url ?? '', 'http://localhost');
    const key = decodeURIComponent(url.pathname.slice('/bucket/'.length));
    const query = url.searchParams;
    const refusal = this.#options.refusal?.();
    if (refusal) return refused(refusal.status, refusal.code);
    if (method === 'GET' && query.has('list-type')) return this.#list(query);
    if (method === 'GET' && query.has('uploads')) return { status: 200, body: '<ListMultipartUploadsResult/>' };
    if (method === 'POST' && query.has('uploads')) return this.#beginUpload(key, headers[NONCE] as string | undefined);
    const upload = query.get('uploadId');
    if (upload !== null) return this.#useUpload(method, upload, query, body, headers['if-none-match'] === '*');
    const found = this.objects.get(key);
    if (method === 'PUT') {
      const isConditional = headers['if-none-match'] === '*' && this.#options.breaks !== 'conditions';
      if (isConditional && found) return refused(412, 'PreconditionFailed');
      this.objects.set(key, { bytes: body, nonce: headers[NONCE] as string | undefined });
      return { status: 200, headers: { etag: '"x"' } };
    }
    if (method === 'DELETE') {
      this.objects.delete(key);
      return { status: 204 };
    }
    if (!found) return refused(404, 'NoSuchKey');
    const metadata: Record<string, string> = found.nonce === undefined ? {} : { [NONCE]: found.nonce };
    if (method === 'HEAD') return { status: 200, headers: { ...metadata, 'content-length': `${found.bytes.length}` } };
    return this.#range(found.bytes, headers.range);
  }

  #range(bytes: Buffer, range: string | undefined): Answer {
    const [, first = '0', last = '0'] = /^bytes=(\d+)-(\d+)$/.exec(range ?? '') ?? [];
    if (this.#options.breaks === 'ranges') return { status: 200, body: bytes };
    if (Number(first) >= bytes.length) return refused(416, 'InvalidRange');
    const part = bytes.subarray(Number(first), Number(last) + 1);
    const to = Number(first) + part.length - 1;
    return { status: 206, body: part, headers: { 'content-range': `bytes ${first}-${to}/${bytes.length}` } };
  }

  #list(query: URLSearchParams): Answer {
    const after = query.get('continuation-token') ?? query.get('start-after') ?? '';
    const size = Number(query.get('max-keys') ?? PAGE_SIZE);
    const isShown = (key: string): boolean => this.#options.breaks !== 'lists' || !key.includes('/slots/');
    const keys = [...this.objects.keys()]
      .filter((key) => key.startsWith(query.get('prefix') ?? '') && key > after && isShown(key))
      .sort();
    const page = keys.slice(0, size);
    const contents = page.map(
      (key) => `<Contents><Key>${key}</Key><Size>${this.objects.get(key)?.bytes.length}</Size></Contents>`,
    );
    const isTruncated = keys.length > page.length;
    const next = isTruncated ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : '';
    return {
      status: 200,
      body: `<ListBucketResult><IsTruncated>${isTruncated}</IsTruncated>${contents.join('')}${next}</ListBucketResult>`,
    };
  }

  #beginUpload(key: string, nonce: string | undefined): Answer {
    const id = `upload-${this.#nextUpload++}`;
    this.uploads.set(id, { key, nonce, parts: new Map() });
    return { status: 200, body: `<R><UploadId>${id}</UploadId></R>` };
  }

  #useUpload(method: string, id: string, query: URLSearchParams, body: Buffer, isConditional: boolean): Answer {
    const upload = this.uploads.get(id);
    if (!upload) return refused(404, 'NoSuchUpload');
    if (method === 'PUT') {
      upload.parts.set(Number(query.get('partNumber')), body);
      return { status: 200, headers: { etag: `"${query.get('partNumber')}"` } };
    }
    if (method === 'POST') {
      const isChecked = isConditional && this.#options.breaks !== 'conditions of uploads';
      if (isChecked && this.objects.has(upload.key)) return refused(412, 'PreconditionFailed');
      const numbers = [...body.toString().matchAll(/<PartNumber>(\d+)</g)].map(([, number]) => Number(number));
      const bytes = Buffer.concat(numbers.map((number) => upload.parts.get(number) ?? Buffer.alloc(0)));
      this.objects.set(upload.key, { bytes, nonce: upload.nonce });
    }
    this.uploads.delete(id);
    return { status: method === 'POST' ? 200 : 204 };
  }
}

function refused(status: number, code: string): Answer {
  return {
    status,
    body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>made &amp; refused</Message></Error>`,
  };
}
