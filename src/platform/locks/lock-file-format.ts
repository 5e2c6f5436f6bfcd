/**
 * The files of the local lock service, one a change. Format: docs/formats/lock-service.md.
 *
 * Invariant: `decodeLockFile` returns the argument of `encodeLockFile`; other bytes are a CorruptionError that names
 * the file, or FAILED_PRECONDITION where a later release wrote it.
 */
import { assert, asBuffer, BigtableError, Code, CorruptionError, crc32c } from '../../base/index.ts';

/** Stored: never renumber. */
export const LockFileKind = { contents: 1, deletion: 2, numbers: 3 } as const;
export type LockFileKind = (typeof LockFileKind)[keyof typeof LockFileKind];

export interface LockFile {
  readonly kind: LockFileKind;
  /** The change's version; with kind `numbers`, the end of the reserved numbers. */
  readonly version: number;
  /** The path in the lock service; empty with kind `numbers`. */
  readonly path: string;
  /** Empty but with kind `contents`. */
  readonly contents: Uint8Array;
}

const MAGIC = Buffer.from('EDUBLOCK', 'latin1');
const FORMAT_VERSION = 1;
/** Feature bits that a reader must know. None so far. */
const KNOWN_REQUIRED_FEATURES = 0;
const HEADER_BYTES = 36;
const CHECKSUM_BYTES = 4;

export function encodeLockFile({ kind, version, path, contents }: LockFile): Buffer {
  assert(Number.isSafeInteger(version) && version > 0, `version ${version} of ${path}`);
  assert(kind === LockFileKind.contents || contents.length === 0, `${path}: contents in a file of kind ${kind}`);
  assert((kind === LockFileKind.numbers) === (path === ''), `${path}: a path and kind ${kind}`);
  const pathBytes = Buffer.from(path, 'utf8');
  const bytes = Buffer.alloc(HEADER_BYTES + pathBytes.length + contents.length + CHECKSUM_BYTES);
  MAGIC.copy(bytes, 0);
  bytes.writeUInt16BE(FORMAT_VERSION, 8);
  bytes.writeUInt16BE(kind, 10);
  bytes.writeUInt32BE(0, 12);
  bytes.writeUInt32BE(0, 16);
  bytes.writeBigUInt64BE(BigInt(version), 20);
  bytes.writeUInt32BE(pathBytes.length, 28);
  bytes.writeUInt32BE(contents.length, 32);
  pathBytes.copy(bytes, HEADER_BYTES);
  asBuffer(contents).copy(bytes, HEADER_BYTES + pathBytes.length);
  const end = bytes.length - CHECKSUM_BYTES;
  bytes.writeUInt32BE(crc32c(bytes.subarray(0, end)), end);
  return bytes;
}

/** `file` is named in errors. */
export function decodeLockFile(file: string, bytes: Buffer): LockFile {
  if (bytes.length < HEADER_BYTES + CHECKSUM_BYTES)
    throw new CorruptionError(file, bytes.length, `${bytes.length} bytes are too few for a lock service file`);
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC))
    throw new CorruptionError(file, 0, 'not a lock service file (magic)');
  const end = bytes.length - CHECKSUM_BYTES;
  if (bytes.readUInt32BE(end) !== crc32c(bytes.subarray(0, end)))
    throw new CorruptionError(file, end, 'checksum does not match');
  checkRelease(file, bytes.readUInt16BE(8), bytes.readUInt32BE(12));

  const kind = bytes.readUInt16BE(10) as LockFileKind;
  if (!Object.values(LockFileKind).includes(kind)) throw new CorruptionError(file, 10, `unknown kind ${kind}`);
  const version = Number(bytes.readBigUInt64BE(20));
  if (!Number.isSafeInteger(version) || version === 0) throw new CorruptionError(file, 20, `version ${version}`);
  const contentsAt = HEADER_BYTES + bytes.readUInt32BE(28);
  if (contentsAt + bytes.readUInt32BE(32) !== end)
    throw new CorruptionError(file, 28, `lengths of path and contents do not add up to ${end - HEADER_BYTES}`);
  const path = bytes.toString('utf8', HEADER_BYTES, contentsAt);
  return { kind, version, path, contents: Uint8Array.from(bytes.subarray(contentsAt, end)) };
}

function checkRelease(file: string, formatVersion: number, requiredFeatures: number): void {
  if (formatVersion !== FORMAT_VERSION) {
    throw new BigtableError(
      Code.FAILED_PRECONDITION,
      `${file}: written in format version ${formatVersion}, this release reads version ${FORMAT_VERSION}`,
    );
  }
  const unknown = (requiredFeatures & ~KNOWN_REQUIRED_FEATURES) >>> 0;
  if (unknown !== 0) {
    throw new BigtableError(
      Code.FAILED_PRECONDITION,
      `${file}: needs features 0x${unknown.toString(16)} that this release does not have`,
    );
  }
}
