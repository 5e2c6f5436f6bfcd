/**
 * BigtableError to gRPC status and back: code, message, and google.rpc.Status in the trailer grpc-status-details-bin where the
 * error carries details. INVALID_ARGUMENT with a `field` detail becomes a BadRequest, other details an ErrorInfo.
 *
 * Invariant: a status always fits a client's header limit (8 KiB in most): long messages are cut, details then left out.
 */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type Any, anyPack, anyUnpack } from '@bufbuild/protobuf/wkt';
import { BigtableError, Code, codeName, toBigtableError } from '../../base/index.ts';
import type { RpcStatus } from '../../wire/index.ts';
import { BadRequestSchema, ErrorInfoSchema } from '../generated/google/rpc/error_details_pb.ts';
import { type Status, StatusSchema } from '../generated/google/rpc/status_pb.ts';

const MESSAGE_CHARS = 2048;
const DETAILS_BYTES = 3072;

/** What a call that ended with `thrown` tells its caller. */
export function wireStatus(thrown: unknown): RpcStatus {
  const error = toBigtableError(thrown);
  const status = rpcStatus(error);
  if (status.details.length === 0) return { code: error.code, message: status.message, details: undefined };
  const details = Buffer.from(toBinary(StatusSchema, status));
  return { code: error.code, message: status.message, details: details.length <= DETAILS_BYTES ? details : undefined };
}

/** The same as a message, for the entries of MutateRows. */
export function rpcStatus(error: BigtableError): Status {
  return create(StatusSchema, { code: error.code, message: wellFormed(error.message), details: errorDetails(error) });
}

/** The error that a status says; undefined where it says OK. */
export function errorOfStatus(code: number, message: string): BigtableError | undefined {
  if (code === Code.OK) return undefined;
  const known = codeName(code as Code) !== undefined;
  return new BigtableError(known ? (code as Code) : Code.UNKNOWN, message);
}

/** The error that a failed call's status says, with its facts: of a BadRequest the field, of an ErrorInfo the metadata. */
export function errorOfAnswer({ code, message, details }: RpcStatus): BigtableError {
  return new BigtableError(code, message, { details: details ? factsOf(details) : {} });
}

function factsOf(details: Buffer): Readonly<Record<string, string>> {
  const facts: Record<string, string> = {};
  try {
    for (const any of fromBinary(StatusSchema, details).details) {
      const field = anyUnpack(any, BadRequestSchema)?.fieldViolations[0]?.field;
      if (field !== undefined) facts.field = field;
      Object.assign(facts, anyUnpack(any, ErrorInfoSchema)?.metadata);
    }
  } catch {
    // details that are none say nothing; code and message still do
  }
  return facts;
}

function errorDetails(error: BigtableError): Any[] {
  const entries = Object.entries(error.details).filter(([, value]) => ['string', 'number', 'bigint', 'boolean'].includes(typeof value));
  if (entries.length === 0) return [];
  const field = error.details.field;
  if (error.code === Code.INVALID_ARGUMENT && typeof field === 'string') {
    return [anyPack(BadRequestSchema, create(BadRequestSchema, { fieldViolations: [{ field, description: wellFormed(error.message) }] }))];
  }
  const metadata = Object.fromEntries(entries.map(([name, value]) => [name, wellFormed(String(value))]));
  return [anyPack(ErrorInfoSchema, create(ErrorInfoSchema, { reason: codeName(error.code), domain: 'edubba', metadata }))];
}

/** Cut to length and free of lone surrogates, which no header can carry. */
function wellFormed(text: string): string {
  const cut = text.length > MESSAGE_CHARS ? `${text.slice(0, MESSAGE_CHARS)}…` : text;
  return Buffer.from(cut, 'utf8').toString('utf8');
}
