/** Signatures of requests (AWS's version 4), by AWS's own signer. It is loaded only when a store on S3 is opened. */
import { createHash, createHmac } from 'node:crypto';
import type { S3Address } from './s3-address.ts';

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}

export interface RequestToSign {
  readonly method: string;
  readonly path: string;
  readonly query: Record<string, string>;
  readonly headers: Record<string, string>;
}

/** Returns the headers with the signature. */
export type S3Signer = (request: RequestToSign, date: Date) => Promise<Readonly<Record<string, string>>>;

/** `credentials` is called for each request, and renews what has expired. */
export async function s3Signer(
  { region, endpoint }: S3Address,
  credentials: () => Promise<S3Credentials>,
): Promise<S3Signer> {
  // in the bundle a CommonJS package has its default export alone
  const { default: signatures } = await import('@smithy/signature-v4');
  const signer = new signatures.SignatureV4({
    service: 's3',
    region,
    credentials,
    sha256: Sha256,
    uriEscapePath: false,
    applyChecksum: false,
  });
  const { protocol, hostname } = endpoint;
  return async (request, signingDate) => {
    const { headers } = await signer.sign({ ...request, protocol, hostname }, { signingDate });
    return headers;
  };
}

/** SHA-256 as the signer wants it. */
class Sha256 {
  readonly #hash;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', asBytes(secret));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(asBytes(data));
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
}

function asBytes(data: string | ArrayBuffer | ArrayBufferView): string | Uint8Array {
  if (typeof data === 'string') return data;
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
}
