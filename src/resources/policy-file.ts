/**
 * The policy of a resource as a file of the lock service: `policies/<full name>`. Format: docs/formats/policies.md.
 */
import { encodeDocument, PlainObject, readBindings } from '../metadata/index.ts';
import type { PolicyBinding } from '../model/index.ts';

const POLICY_DIRECTORY = 'policies/';

/** The file of a resource's policy; of a prefix of names, the prefix of their files. */
export function policyPath(resource: string): string {
  return POLICY_DIRECTORY + resource;
}

export interface PolicyFile {
  /** Tells the resource from a later one of the same name. */
  readonly owner: string;
  readonly bindings: readonly PolicyBinding[];
  /** The unique name of the write that made this file. */
  readonly write: string;
}

export function encodePolicy(file: PolicyFile): Buffer {
  return encodeDocument({ ...file });
}

/** Checks every field: CorruptionError names the one that is wrong. */
export function decodePolicy(path: string, bytes: Uint8Array): PolicyFile {
  const object = PlainObject.parse(path, bytes);
  return {
    owner: object.text('owner'),
    bindings: readBindings(object),
    write: object.text('write'),
  };
}
