/**
 * Long-running operations as files of the lock service (docs/formats/operations.md): a limited number of files, each
 * of which holds one operation, or is free.
 */
import { bytes, message, type MessageCodec, number, required, text } from '../protobuf/index.ts';
import type { KeptOperation } from '../service/index.ts';

/** The directory of the files. */
export const OPERATIONS_DIRECTORY = 'operations/';
export const OPERATION_FILES = 128;

/** An operation, and when it was made. */
export interface OperationFile extends KeptOperation {
  /** By the wall clock of the door that answered it. */
  readonly madeMicros: number;
}

const operationFile: MessageCodec<OperationFile> = message('OperationFile', {
  name: required(1, text),
  madeMicros: required(2, number),
  contents: required(3, bytes),
});

/** The file of that index, from 0. */
export function operationPath(index: number): string {
  return OPERATIONS_DIRECTORY + index.toString(16).padStart(2, '0');
}

export function encodeOperationFile(operation: OperationFile): Buffer {
  return operationFile.encode(operation);
}

/** Undefined for a file that is free. INVALID_ARGUMENT where it cannot be read. */
export function decodeOperationFile(contents: Uint8Array): OperationFile | undefined {
  return contents.length === 0 ? undefined : operationFile.decode(Buffer.from(contents));
}
