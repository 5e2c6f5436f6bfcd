/**
 * Messages to bytes and back by protobuf-es. Malformed bytes are INVALID_ARGUMENT on the server's side (a request); an
 * answer that a client cannot read is INTERNAL.
 */
import { type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { BigtableError, Code, invalidArgument } from '../../base/index.ts';

export function decodeRequest<Desc extends DescMessage>(schema: Desc, bytes: Uint8Array): MessageShape<Desc> {
  try {
    return fromBinary(schema, bytes);
  } catch (error) {
    throw invalidArgument(`invalid ${schema.typeName}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

export function decodeAnswer<Desc extends DescMessage>(schema: Desc, bytes: Uint8Array): MessageShape<Desc> {
  try {
    return fromBinary(schema, bytes);
  } catch (error) {
    throw new BigtableError(Code.INTERNAL, `the server's answer is not a valid ${schema.typeName}`, { cause: error });
  }
}

export function encode<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): Buffer {
  const bytes = toBinary(schema, message);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
