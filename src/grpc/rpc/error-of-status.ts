/** gRPC's statuses as BigtableErrors, for the client side: the reverse of rpc/status.ts. */
import { fromBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { BigtableError, Code, codeName } from '../../base/index.ts';
import type { RpcStatus } from '../../wire/index.ts';
import { BadRequestSchema, ErrorInfoSchema } from '../generated/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../generated/google/rpc/status_pb.ts';

/** The error of a status; undefined for OK. */
export function errorOfStatus(code: number, message: string): BigtableError | undefined {
  if (code === Code.OK) return undefined;
  const known = codeName(code as Code) !== undefined;
  return new BigtableError(known ? (code as Code) : Code.UNKNOWN, message);
}

/** The error of a failed call's status, with its facts: the field of a BadRequest, the metadata of an ErrorInfo. */
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
    // invalid details are ignored; code and message remain
  }
  return Object.fromEntries(facts);
}
