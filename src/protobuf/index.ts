/**
 * protobuf: its wire format, field by field, and messages defined in TypeScript: each definition reads, writes and
 * prints itself. For messages of our own; those of the Cloud API are in `grpc`. Pure.
 */
export {
  byteString,
  bytes,
  choice,
  type Codec,
  count,
  type Definition,
  flag,
  integer,
  lazy,
  mapped,
  MessageCodec,
  missingField,
  number,
  text,
  whole,
} from './codec.ts';
export {
  type FieldsOf,
  list,
  listOf,
  longList,
  map,
  mapOf,
  mappedMessage,
  maybe,
  message,
  nothing,
  optional,
  present,
  required,
  single,
  STEP_ITEMS,
} from './fields.ts';
export { oneOf } from './kinds.ts';
export { int64Length, lengthDelimited, type MessageWriter, PART_BYTES, textLength } from './message-writer.ts';
export { protoFile } from './proto-file.ts';
export { WireReader } from './wire-reader.ts';
