/**
 * BigtableError to gRPC status: code, message, and google.rpc.Status in the trailer grpc-status-details-bin where the
 * error carries details. INVALID_ARGUMENT with a `field` detail becomes a BadRequest, other details an ErrorInfo.
 * Written by hand: a server that has just started has nothing else to load the generated codec for.
 *
 * Invariant: a status always fits a client's header limit (8 KiB in most): long messages are cut, details then left
 * out.
 */
import { type BigtableError, Code, codeName, toBigtableError } from '../../base/index.ts';
import type { RpcStatus } from '../../wire/index.ts';
import { lengthDelimited } from '../../protobuf/index.ts';
import { writeBytes } from '../bytes/wire-writer.ts';

const MESSAGE_CHARS = 2048;
const DETAILS_BYTES = 3072;
const EMPTY_BYTES = Buffer.alloc(0);
/** The wire type of length-delimited fields. */
const LENGTH_DELIMITED = 2;

/** The status of a call that ended with `thrown`. */
export function wireStatus(thrown: unknown): RpcStatus {
  const error = toBigtableError(thrown);
  const message = wellFormed(error.message);
  const any = errorDetails(error);
  const details = any && statusOf(error.code, message, any);
  return { code: error.code, message, details: details && details.length <= DETAILS_BYTES ? details : undefined };
}

/** The same as a google.rpc.Status, for the entries of MutateRows. */
export function statusBytes(error: BigtableError): Buffer {
  return statusOf(error.code, wellFormed(error.message), errorDetails(error) ?? EMPTY_BYTES);
}

/** google.rpc.Status with one google.protobuf.Any of details, or none. */
function statusOf(code: Code, message: string, any: Buffer): Buffer {
  return Buffer.concat([code === 0 ? EMPTY_BYTES : Buffer.of(0x08, code), field(2, message), field(3, any)]);
}

/** google.protobuf.Any of a google.rpc.BadRequest or ErrorInfo; undefined where there are no details. */
function errorDetails(error: BigtableError): Buffer | undefined {
  const entries = Object.entries(error.details).filter(([, value]) =>
    ['string', 'number', 'bigint', 'boolean'].includes(typeof value),
  );
  if (entries.length === 0) return undefined;
  const at = error.details.field;
  if (error.code === Code.INVALID_ARGUMENT && typeof at === 'string') {
    return anyOf(
      'google.rpc.BadRequest',
      field(1, Buffer.concat([field(1, wellFormed(at)), field(2, wellFormed(error.message))])),
    );
  }
  const metadata = entries.map(([name, value]) =>
    field(3, Buffer.concat([field(1, name), field(2, wellFormed(String(value)))])),
  );
  return anyOf(
    'google.rpc.ErrorInfo',
    Buffer.concat([field(1, codeName(error.code) ?? ''), field(2, 'edubba'), ...metadata]),
  );
}

function anyOf(typeName: string, message: Buffer): Buffer {
  return Buffer.concat([field(1, `type.googleapis.com/${typeName}`), field(2, message)]);
}

/** A length-delimited field; nothing where it would be empty, as proto3 has it. */
function field(number: number, content: string | Buffer): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content, 'utf8') : content;
  if (bytes.length === 0) return EMPTY_BYTES;
  const whole = Buffer.allocUnsafe(lengthDelimited(bytes.length));
  writeBytes(whole, 0, (number << 3) | LENGTH_DELIMITED, bytes);
  return whole;
}

/** Cut to length and free of lone surrogates, which no header can carry. */
function wellFormed(text: string): string {
  const cut = text.length > MESSAGE_CHARS ? `${text.slice(0, MESSAGE_CHARS)}…` : text;
  return Buffer.from(cut, 'utf8').toString('utf8');
}
