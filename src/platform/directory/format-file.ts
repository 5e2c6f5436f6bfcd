/**
 * The text of the file EDUBBA: what a directory or a store holds, in which version. Formats: docs/formats/directory.md,
 * docs/formats/shared-store.md, docs/formats/read-cache.md.
 */
import { BigtableError, Code, CorruptionError, crc32c } from '../../base/index.ts';

/** `directory`: one process owns it. `store`: many machines share it. `cache`: parts of a store. */
type Kind = 'directory' | 'store' | 'cache';

export const FORMAT_NAME = 'EDUBBA';
const VERSION = 1;
const FORMAT =
  /^edubba (directory|store|cache)\nversion (\d{1,9})\nrequires ([0-9a-f]{8})\nidentity ([0-9a-f]{32})\nchecksum ([0-9a-f]{8})\n$/;
const WHAT: Readonly<Record<Kind, string>> = {
  directory: 'a directory that one process owns',
  store: 'a store that many machines share',
  cache: 'a read cache of a store',
};

/** The text of the format file. */
export function formatText(kind: Kind, identity: string, version = VERSION, requires = 0): string {
  const text = `edubba ${kind}\nversion ${version}\nrequires ${hex32(requires)}\nidentity ${identity}\n`;
  return `${text}checksum ${hex32(crc32c(Buffer.from(text, 'latin1')))}\n`;
}

/** The identity in the text of a format file of that kind. */
export function parseFormat(text: string, file: string, kind: Kind): string {
  const match = FORMAT.exec(text);
  if (!match) throw new CorruptionError(file, 0, 'not the format file of an Edubba directory');
  const [, found, version = '', requires = '', identity = '', checksum] = match;
  const checked = text.slice(0, text.lastIndexOf('checksum '));
  if (hex32(crc32c(Buffer.from(checked, 'latin1'))) !== checksum)
    throw new CorruptionError(file, checked.length, 'the checksum is wrong');
  if (found !== kind)
    throw new BigtableError(Code.FAILED_PRECONDITION, `${file}: this is ${WHAT[found as Kind]}, not ${WHAT[kind]}`);
  if (Number(version) !== VERSION || requires !== hex32(0)) {
    throw new BigtableError(
      Code.FAILED_PRECONDITION,
      `${file}: a ${kind} of version ${version} that requires the features ${requires}; this Edubba knows version ${VERSION} and no features`,
    );
  }
  return identity;
}

function hex32(value: number): string {
  return value.toString(16).padStart(8, '0');
}
