/**
 * A resource of the API that is kept as it is, as a file of the lock service: `resources/KIND/<full name>`. Format:
 * docs/formats/resources.md.
 */
import { encodeDocument, PlainObject } from '../metadata/index.ts';

export interface ResourceFile {
  /** The full name of the resource. */
  readonly name: string;
  /** Tells its parent from a later one of the same name. */
  readonly owner: string;
  readonly contents: Uint8Array;
  /** The unique name of the write that made this file. */
  readonly write: string;
}

/** The file of a resource; of a prefix of names, the prefix of their files. */
export function resourcePath(kind: string, name: string): string {
  return `resources/${kind}/${name}`;
}

export function encodeResource({ contents, ...fields }: ResourceFile): Buffer {
  return encodeDocument({ ...fields, contents: Buffer.from(contents).toString('base64') });
}

/** Checks every field: CorruptionError names the one that is wrong. */
export function decodeResource(path: string, bytes: Uint8Array): ResourceFile {
  const object = PlainObject.parse(path, bytes);
  const encoded = object.text('contents');
  const contents = Buffer.from(encoded, 'base64');
  if (contents.toString('base64') !== encoded) throw object.wrong('contents', 'base64', encoded);
  return { name: object.text('name'), owner: object.text('owner'), write: object.text('write'), contents };
}
