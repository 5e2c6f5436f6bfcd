/** Refusals of S3 as errors, and the few elements of its XML that are read. */
import { BigtableError, Code } from '../../base/index.ts';
import type { S3Address } from './s3-address.ts';

type Meaning = readonly [Code, (address: S3Address) => string];

const WITHOUT_WORDS = (): string => '';
const REFUSED: Meaning = [Code.PERMISSION_DENIED, () => 'the credentials do not allow it'];
const UNKNOWN_CREDENTIALS: Meaning = [Code.UNAUTHENTICATED, () => 'the credentials are wrong'];
const OTHER_REGION: Meaning = [Code.FAILED_PRECONDITION, ({ region }) => `the bucket is not in region "${region}"`];
const FULL: Meaning = [Code.RESOURCE_EXHAUSTED, () => 'there is no space'];
const BUSY: Meaning = [Code.UNAVAILABLE, WITHOUT_WORDS];

/** By S3's name of the error. */
const BY_NAME: Readonly<Record<string, Meaning>> = {
  NoSuchBucket: [Code.FAILED_PRECONDITION, ({ bucket }) => `bucket "${bucket}" not found`],
  AccessDenied: REFUSED,
  AllAccessDisabled: REFUSED,
  AccountProblem: REFUSED,
  InvalidAccessKeyId: UNKNOWN_CREDENTIALS,
  SignatureDoesNotMatch: UNKNOWN_CREDENTIALS,
  InvalidToken: UNKNOWN_CREDENTIALS,
  XAdminUserNotFound: UNKNOWN_CREDENTIALS,
  // they are renewed for the next attempt
  ExpiredToken: BUSY,
  RequestTimeTooSkewed: [Code.FAILED_PRECONDITION, () => 'the clock of this machine differs from that of the store'],
  PermanentRedirect: OTHER_REGION,
  AuthorizationHeaderMalformed: OTHER_REGION,
  QuotaExceeded: FULL,
  InsufficientStorage: FULL,
  XMinioStorageFull: FULL,
  XMinioBackendDown: BUSY,
  NotImplemented: [Code.UNIMPLEMENTED, () => 'the store does not know this request'],
  SlowDown: BUSY,
  RequestTimeout: BUSY,
  OperationAborted: BUSY,
  ConditionalRequestConflict: BUSY,
  NoSuchKey: [Code.NOT_FOUND, WITHOUT_WORDS],
  NoSuchUpload: [Code.NOT_FOUND, WITHOUT_WORDS],
};

const BY_STATUS: Readonly<Record<number, Meaning>> = {
  301: OTHER_REGION,
  307: OTHER_REGION,
  401: UNKNOWN_CREDENTIALS,
  403: REFUSED,
  // what names no object or upload: a user, or a bucket
  404: [Code.FAILED_PRECONDITION, () => 'the store does not find what the request needs'],
  408: BUSY,
  409: BUSY,
  416: [Code.OUT_OF_RANGE, WITHOUT_WORDS],
  425: BUSY,
  429: BUSY,
  501: [Code.UNIMPLEMENTED, () => 'the store does not know this request'],
  507: FULL,
};

/** `what`: the request, for people. `body`: the answer's, which may be empty. */
export function s3Error(address: S3Address, what: string, status: number, body: string): BigtableError {
  const name = element(body, 'Code') ?? '';
  const [code, words] = BY_NAME[name] ??
    BY_STATUS[status] ?? [status >= 500 ? Code.UNAVAILABLE : Code.INTERNAL, WITHOUT_WORDS];
  const meaning = words(address);
  const answer = [`${status}`, name, element(body, 'Message') ?? ''].filter((part) => part !== '').join(' ');
  return new BigtableError(code, `${address.text}: ${what}: ${meaning}${meaning && ' '}(${answer.slice(0, 500)})`);
}

/** True for an answer that says that there is no such object or upload, and nothing else. */
export function isMissing(status: number, body: string): boolean {
  return status === 404 && ['', 'NoSuchKey', 'NoSuchUpload'].includes(element(body, 'Code') ?? '');
}

/** The text of the first such element; undefined, if there is none. */
export function element(xml: string, name: string): string | undefined {
  return elements(xml, name)[0];
}

/** The contents of all such elements, in order. None contains another of its name. */
export function elements(xml: string, name: string): string[] {
  const found: string[] = [];
  const [open, close] = [`<${name}>`, `</${name}>`];
  for (let at = xml.indexOf(open); at >= 0; at = xml.indexOf(open, at)) {
    const end = xml.indexOf(close, at);
    if (end < 0) break;
    found.push(unescaped(xml.slice(at + open.length, end)));
    at = end;
  }
  return found;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function unescaped(text: string): string {
  return text.replace(/&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(\w{2,4}));/gi, (whole, hex, decimal, name) => {
    if (name !== undefined) return ENTITIES[name] ?? whole;
    const point = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
    return point <= 0x10ffff ? String.fromCodePoint(point) : whole;
  });
}
