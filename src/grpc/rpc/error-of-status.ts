/** gRPC's statuses as BigtableErrors, for the client side: what rpc/status.ts makes of errors, back. */
import { fromBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { BigtableError, Code, codeName } from '../../base/index.ts';
import type { RpcStatus } from '../../wire/index.ts';
import { BadRequestSchema, ErrorInfoSchema } from '../generated/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../generated/google/rpc/status_pb.ts';

/** The error that a status says; undefined where it says OK. */
export function errorOfStatus(code: number, message: string): BigtableError | undefined {
  if (code === Code.OK) return undefined;
  const known = codeName(code as Code) !== undefined;
  return new BigtableError(known ? (code as Code) : Code.UNKNOWN, message);
}

/**
 * The error that a failed call's status says, with its facts: of a BadRequest the field, of an ErrorInfo the metadata.
 */
export function errorOfAnswer({ code, message, details }: RpcStatus): BigtableError {
  return new BigtableError(code, message, { details: details ? factsOf(details) : {} });
}

function factsOf(details: Buffer): Readonly<Record<string, string>> {
  const facts = new Map<string, string>();
  try {
    for (const any of fromBinary(StatusSchema, details).details) {
      const field = anyUnpack(any, BadRequestSchema)?.fieldViolations[0]?.field;
      if (field !== undefined) facts.set('field', field);
      for (const [name, value] of Object.entries(anyUnpack(any, ErrorInfoSchema)?.metadata ?? {}))
        facts.set(name, value);
    }
  } catch {
    // details that are none say nothing; code and message still do
  }
  return Object.fromEntries(facts);
}
