import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code, CorruptionError, crc32c } from '../../base/index.ts';
import { decodeLockFile, encodeLockFile, LockFileKind } from './lock-file-format.ts';

/** The example of docs/formats/lock-service.md: version 4097 of "root" holds "abc". */
const GOLDEN = '454455424c4f434b00010001000000000000000000000000000010010000000400000003726f6f74616263';
const GOLDEN_CHECKSUM = '9c0f763c';

const lockFiles = fc.oneof(
  fc.record({
    kind: fc.constant(LockFileKind.contents),
    version: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    path: fc.string({ unit: 'binary', minLength: 1 }),
    contents: fc.uint8Array({ maxLength: 300 }),
  }),
  fc.record({
    kind: fc.constant(LockFileKind.deletion),
    version: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    path: fc.string({ unit: 'binary', minLength: 1 }),
    contents: fc.constant(new Uint8Array(0)),
  }),
  fc.record({
    kind: fc.constant(LockFileKind.numbers),
    version: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    path: fc.constant(''),
    contents: fc.constant(new Uint8Array(0)),
  }),
);

describe('lock service files', () => {
  test('decode to the encoded value', () => {
    fc.assert(
      fc.property(lockFiles, (file) => assert.deepEqual(decodeLockFile('f', encodeLockFile(file)), { ...file })),
    );
  });

  test('keep the bytes of the format’s page', () => {
    const bytes = encodeLockFile({
      kind: LockFileKind.contents,
      version: 4097,
      path: 'root',
      contents: Buffer.from('abc'),
    });
    assert.equal(bytes.toString('hex'), GOLDEN + GOLDEN_CHECKSUM);
  });

  test('every flipped bit, every cut and every extra byte is corruption that names the file', () => {
    const whole = encodeLockFile({
      kind: LockFileKind.contents,
      version: 7,
      path: 'a/b',
      contents: Buffer.from('content'),
    });
    const refused = (bytes: Buffer, what: string): void => {
      assert.throws(
        () => decodeLockFile('the/file', bytes),
        (error) => error instanceof CorruptionError && error.file === 'the/file',
        what,
      );
    };
    for (let bit = 0; bit < whole.length * 8; bit++) {
      const damaged = Buffer.from(whole);
      damaged[bit >> 3] = damaged[bit >> 3]! ^ (1 << (bit & 7));
      refused(damaged, `bit ${bit}`);
    }
    for (let length = 0; length < whole.length; length++) refused(whole.subarray(0, length), `${length} bytes`);
    refused(Buffer.concat([whole, Buffer.of(0)]), 'one byte more');
  });

  test('bytes that no writer makes are corruption even where the checksum is right', () => {
    const cases: [number, number, RegExp][] = [
      [10, 9, /unknown kind 2305/],
      [20, 0xff, /version/],
      [31, 60, /do not add up/],
      [35, 0, /do not add up/],
    ];
    for (const [at, value, message] of cases) {
      assert.throws(
        () => decodeLockFile('f', altered(at, value)),
        (error) => error instanceof CorruptionError && message.test(error.message),
        `${message}`,
      );
    }
    assert.throws(
      () => encodeLockFile({ kind: LockFileKind.contents, version: 0, path: 'a', contents: Buffer.alloc(0) }),
      /version 0/,
    );
    assert.throws(
      () => encodeLockFile({ kind: LockFileKind.deletion, version: 1, path: 'a', contents: Buffer.alloc(1) }),
      /contents in a file/,
    );
    assert.throws(
      () => encodeLockFile({ kind: LockFileKind.contents, version: 1, path: '', contents: Buffer.alloc(1) }),
      /a path and kind/,
    );
  });

  test('a later release’s file is refused with a message', () => {
    const refused = (bytes: Buffer, message: RegExp): void => {
      assert.throws(
        () => decodeLockFile('the/file', bytes),
        (error) =>
          error instanceof BigtableError && error.code === Code.FAILED_PRECONDITION && message.test(error.message),
      );
    };
    refused(altered(9, 2), /the\/file: written in format version 2, this release reads version 1/);
    refused(altered(15, 4), /the\/file: needs features 0x4 /);
    refused(altered(12, 0x80), /needs features 0x80000000 /);
    assert.equal(decodeLockFile('f', altered(19, 1)).path, 'root', 'optional features are ignored');
  });
});

/** The golden file with one byte changed and a checksum that fits. */
function altered(at: number, value: number): Buffer {
  const body = Buffer.from(GOLDEN, 'hex');
  body[at] = value;
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32c(body));
  return Buffer.concat([body, checksum]);
}
