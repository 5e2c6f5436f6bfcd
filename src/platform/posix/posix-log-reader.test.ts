/**
 * Reading of damaged segments. Logs are written to a real directory, loaded into memory, damaged there in every way,
 * and read back through system calls that answer from memory.
 */
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, test } from 'node:test';
import { BigtableError, Code, CorruptionError, crc32c } from '../../base/index.ts';
import { silentLogger } from '../../env/index.ts';
import { Directories } from './posix-directories.ts';
import { openPosixFileSystem } from './posix-file-system.ts';
import {
  decodeSegmentHeader,
  encodeFrameEnd,
  encodeFrameHeader,
  encodeSegmentHeader,
  FRAME_HEADER_BYTES,
  frameBytes,
  isZero,
  mayBeTorn,
  SEGMENT_HEADER_BYTES,
  segmentName,
} from './posix-log-format.ts';
import { readLogSegments } from './posix-log-reader.ts';
import { nodeSyscalls, type Syscalls } from './posix-syscalls.ts';

const GOLDEN = `
  45445542 424c4f47 01004000 00000000
  01020304 05060708 60000000 00000000
  00000000 00000000 00000000 00000000
  00000000 00000000 00000000 e05c4fb8
  4652414d 06000000 60000000 00000000
  01020304 05060708 b0103792 97cf4d93
  7461626c 65740000 00000000 00000000
  00000000 00000000 00000000 444f4e45
  4652414d 05000000 a0000000 00000000
  01020304 05060708 5ef9be8d 8d9fd57c
  686f7573 65000000 00000000 00000000
  00000000 00000000 00000000 444f4e45
`;

const MARKED = `
  45445542 424c4f47 01004000 00000000
  01020304 05060708 60000000 00000000
  e0000000 00000000 00000000 00000000
  00000000 00000000 00000000 4c63188b
`;

type Files = Map<string, Buffer>;

/** Payloads without a sector of zeros. */
function payload(length: number, seed: number): Buffer {
  return Buffer.from(Uint8Array.from({ length }, (_, i) => ((i * 31 + seed * 7) % 251) + 1));
}

/** The log as left by a writer that was killed, or that closed it. */
async function writeLog(payloads: readonly Buffer[], logSegmentBytes: number, isClosed = false): Promise<Files> {
  const directory = fs.mkdtempSync(join(tmpdir(), 'edubba-log-'));
  try {
    const fileSystem = await openPosixFileSystem(directory, { checksum: crc32c, logSegmentBytes });
    const log = await fileSystem.openLog('log');
    for (const bytes of payloads) await log.append([bytes]);
    if (isClosed) await fileSystem.close();
    const at = join(directory, 'logs', 'log');
    const files = new Map(
      fs
        .readdirSync(at)
        .sort()
        .map((name) => [name, fs.readFileSync(join(at, name))]),
    );
    await fileSystem.close();
    return files;
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
}

function memorySyscalls(files: Files): Syscalls {
  const names = [...files.keys()];
  const bytesOf = (of: string | number): Buffer => {
    const bytes = files.get(typeof of === 'number' ? names[of]! : basename(of));
    if (!bytes) throw Object.assign(new Error(`no ${of}`), { code: 'ENOENT' });
    return bytes;
  };
  return {
    ...nodeSyscalls,
    open: async (path) => (bytesOf(path), names.indexOf(basename(path))),
    close: async () => undefined,
    fileSize: async (of) => bytesOf(of).length,
    read: async (fd, into, offset, length, position) => bytesOf(fd).copy(into, offset, position, position + length),
    readdir: async () => names.map((name) => ({ name, isDirectory: false })),
  };
}

interface Outcome {
  readonly payloads: Buffer[];
  readonly error?: unknown;
}

async function read(
  files: Files,
  from = 0,
  end?: number,
  onRead = (_bytes: number): void => {},
  chunkBytes?: number,
): Promise<Outcome> {
  const memory = memorySyscalls(files);
  const syscalls: Syscalls = {
    ...memory,
    read: async (fd, into, offset, length, position) => {
      const got = await memory.read(fd, into, offset, length, position);
      onRead(got);
      return got;
    },
  };
  const directories = new Directories('/', syscalls, 'test');
  const setting = {
    syscalls,
    directories,
    checksum: crc32c,
    logger: silentLogger,
    segmentBytes: 4096,
    pause: () => Promise.resolve(),
  };
  const payloads: Buffer[] = [];
  try {
    for await (const append of readLogSegments(setting, 'log', from, () => end, chunkBytes))
      payloads.push(append.bytes);
    return { payloads };
  } catch (error) {
    return { payloads, error };
  }
}

/** Files with one of them replaced by a damaged copy. */
function damaged(files: Files, name: string, damage: (bytes: Buffer) => void): Files {
  const copy = Buffer.from(files.get(name)!);
  damage(copy);
  return new Map(files).set(name, copy);
}

function truncated(files: Files, name: string, length: number): Files {
  return new Map(files).set(name, files.get(name)!.subarray(0, length));
}

/** 'all', 'torn' (all but the last) or 'corrupt'; fails where anything else came back. */
function judge(outcome: Outcome, written: readonly Buffer[], what: string): 'all' | 'torn' | 'corrupt' {
  outcome.payloads.forEach((bytes, i) => assert.ok(bytes.equals(written[i]!), `${what}: append ${i} came back wrong`));
  if (outcome.error) {
    assert.ok(outcome.error instanceof CorruptionError, `${what}: ${outcome.error}`);
    assert.match(outcome.error.file, /^logs\/log\/\d{16}\.segment$/, what);
    return 'corrupt';
  }
  if (outcome.payloads.length === written.length) return 'all';
  assert.equal(outcome.payloads.length, written.length - 1, `${what}: more than the last append was lost in silence`);
  return 'torn';
}

const WRITTEN = [10, 0, 700, 40, 1900, 1500, 31, 300].map(payload);
const LONGER = [...WRITTEN, payload(1300, 8), payload(1100, 9)];

test('a log is read once from end to end, whatever the sizes of its appends, and returned bytes stay unchanged', async () => {
  const sizes = [10, 700_000, 300_000, 2_500_000, 15_000, 17_000, 1, 1_048_576, 60_000];
  const written = sizes.map(payload);
  const files = await writeLog(written, 3 << 20);
  let readBytes = 0;
  const outcome = await read(files, 0, undefined, (bytes) => (readBytes += bytes));
  assert.equal(judge(outcome, written, 'large appends'), 'all');
  const totalBytes = [...files.values()].reduce((sum, bytes) => sum + bytes.length, 0);
  // after the end a window is searched once more
  assert.ok(files.size > 1 && readBytes <= totalBytes + (1 << 20), `${readBytes} bytes were read of ${totalBytes}`);
});

describe('a damaged log', () => {
  test('with every byte flipped: everything comes back, or a CorruptionError; never wrong bytes, and no append lost in silence', async (t) => {
    const files = await writeLog(WRITTEN, 4096);
    assert.equal(files.size, 2);
    const outcomes = { all: 0, torn: 0, corrupt: 0 };
    for (const [name, bytes] of files) {
      for (let at = 0; at < bytes.length; at++) {
        const bits = at % 9 === 8 ? 0xff : 1 << (at % 9);
        const outcome = await read(damaged(files, name, (copy) => void (copy[at] = copy[at]! ^ bits)));
        outcomes[judge(outcome, WRITTEN, `${name} byte ${at} ^ ${bits}`)]++;
      }
    }
    t.diagnostic(JSON.stringify(outcomes));
    // a payload with a sector of zeros could be taken for a torn one; these have none
    assert.equal(outcomes.torn, 0);
    const payloadBytes = WRITTEN.reduce((sum, bytes) => sum + bytes.length, 0);
    assert.ok(outcomes.corrupt >= payloadBytes);
  });

  test('after every truncation everything comes back, or a CorruptionError', async (t) => {
    const files = await writeLog(WRITTEN, 4096);
    const outcomes = { all: 0, torn: 0, corrupt: 0 };
    for (const [name, bytes] of files) {
      for (let length = 0; length < bytes.length; length++)
        outcomes[judge(await read(truncated(files, name, length)), WRITTEN, `${name} cut to ${length}`)]++;
    }
    t.diagnostic(JSON.stringify(outcomes));
    assert.equal(outcomes.torn, 0);
    assert.ok(outcomes.all > 0 && outcomes.corrupt > 0);
  });

  test('whatever the chunks in which it is read, the outcome is the same: whole, torn, short and damaged logs', async () => {
    const files = await writeLog(LONGER, 4096);
    const name = segmentName(0);
    const [, last = name] = [...files.keys()];
    const logs = [
      files,
      // the last write did not end
      damaged(files, last, (copy) => copy.fill(0, copy.findLastIndex((byte) => byte !== 0) - 1000)),
      ...[64, 1000, 2048, 3999].map((at) => damaged(files, name, (copy) => void (copy[at] = copy[at]! ^ 1))),
      ...[63, 64, 96, 1024, 2049].map((length) => truncated(files, last, length)),
    ];
    for (const [i, log] of logs.entries()) {
      const expected = await read(log);
      for (let chunkBytes = 32; chunkBytes < 4300; chunkBytes += chunkBytes < 600 ? 32 : 224) {
        for (const from of [0, 32, 96, 4064]) {
          const whole = from === 0 ? expected : await read(log, from);
          assert.deepEqual(
            await read(log, from, undefined, undefined, chunkBytes),
            whole,
            `log ${i} from ${from} in chunks of ${chunkBytes}`,
          );
        }
      }
    }
  });

  test('a segment that becomes shorter while it is read is damage at its end', async () => {
    const files = await writeLog(WRITTEN, 4096);
    const name = segmentName(0);
    let reads = 0;
    const live = new Map(files);
    const { payloads, error } = await read(
      live,
      0,
      undefined,
      () => {
        if (++reads === 3) live.set(name, files.get(name)!.subarray(0, 1000));
      },
      256,
    );
    assert.ok(payloads.length > 0 && error instanceof CorruptionError);
    assert.match(error.message, /became shorter/);
    assert.equal(error.offset, 1000);
  });

  test('every way in which the sectors of the last write can be missing: only the last append is lost', async () => {
    for (const lastBytes of [5, 400, 2500]) {
      const written = [payload(100, 1), payload(333, 2), payload(lastBytes, 3)];
      const files = await writeLog(written, 8192);
      const name = segmentName(0);
      const begin = SEGMENT_HEADER_BYTES + frameBytes(100) + frameBytes(333);
      const end = begin + frameBytes(lastBytes);
      const sectors: [number, number][] = [];
      for (let at = begin; at < end; ) {
        const next = Math.min(end, at - (at % 512) + 512);
        sectors.push([at, next]);
        at = next;
      }
      for (let missing = 0; missing < 2 ** sectors.length; missing++) {
        const outcome = await read(
          damaged(files, name, (copy) => {
            for (const [i, [from, to]] of sectors.entries()) if (missing & (1 << i)) copy.fill(0, from, to);
          }),
        );
        assert.equal(
          judge(outcome, written, `${lastBytes} bytes without sectors ${missing.toString(2)}`),
          missing === 0 ? 'all' : 'torn',
        );
      }
    }
  });

  test('appends of the last segment that became zeros are missed: all in a closed log, those before the last piece of space in another', async () => {
    const payloads = Array.from({ length: 60 }, (_, i) => payload(100_000, i));
    for (const isClosed of [true, false]) {
      const files = await writeLog(payloads, 16 << 20, isClosed);
      assert.equal(files.size, 1);
      const [[name, whole]] = [...files] as [[string, Buffer]];
      assert.deepEqual((await read(files)).payloads, payloads);
      let undetected = 0;
      for (let kept = 0; kept < payloads.length; kept++) {
        const zeroed = Buffer.from(whole);
        zeroed.fill(0, SEGMENT_HEADER_BYTES + kept * frameBytes(100_000));
        const { payloads: found, error } = await read(new Map([[name, zeroed]]));
        assert.deepEqual(found, payloads.slice(0, kept));
        if (error === undefined) undetected++;
        else assert.match(String(error), /appends up to position \d+ are missing/);
      }
      // the last piece of space is as large as the space filled before it: here 2 or 4 MiB of 6
      assert.ok(
        isClosed ? undetected === 0 : undetected < 45,
        `${undetected} of 60 positions where zeros begin are not detected`,
      );
    }
  });

  test('a torn append with a whole one after it is corrupt, however far after', async () => {
    const written = [payload(600, 1), payload(2000, 2), payload(2_000_000, 3), payload(5, 4)];
    const files = await writeLog(written, 4 << 20);
    const name = segmentName(0);
    const second = SEGMENT_HEADER_BYTES + frameBytes(600);
    const third = second + frameBytes(2000);
    for (const [from, to] of [
      [second, third],
      [second + 512, second + 1536],
      [third, third + 1_900_000],
      [third, third + 512],
    ] as const) {
      const outcome = await read(damaged(files, name, (copy) => void copy.fill(0, from, to)));
      assert.ok(outcome.error instanceof CorruptionError, `zeros from ${from} to ${to}`);
      assert.match(outcome.error.message, /a valid one follows/);
    }
    // with all of the tail gone, the loss looks like an append that was never made
    const cut = await read(damaged(files, name, (copy) => void copy.fill(0, third)));
    assert.equal(cut.payloads.length, 2);
  });

  test('where the log is known to end nothing may be missing before it', async () => {
    const written = [payload(600, 1), payload(2000, 2)];
    const files = await writeLog(written, 8192);
    const end = frameBytes(600) + frameBytes(2000);
    assert.equal((await read(files, 0, end)).payloads.length, 2);
    assert.equal((await read(files, 0, frameBytes(600))).payloads.length, 1);
    const torn = damaged(
      files,
      segmentName(0),
      (copy) => void copy.fill(0, SEGMENT_HEADER_BYTES + frameBytes(600) + 512),
    );
    assert.deepEqual(judge(await read(torn), written, 'without a known end'), 'torn');
    assert.deepEqual(judge(await read(torn, 0, end), written, 'with one'), 'corrupt');
  });

  test('a missing, foreign or strange file among the segments is corrupt', async () => {
    const files = await writeLog(LONGER, 4096);
    const other = await writeLog(LONGER, 4096);
    const names = [...files.keys()];
    const middle = names[1]!;
    const without = new Map(files);
    without.delete(middle);
    const outcome = await read(without);
    assert.ok(outcome.error instanceof CorruptionError);
    assert.match(outcome.error.message, /appends up to position \d+ are missing/);
    judge(outcome, LONGER, 'without the second segment');
    assert.equal(
      judge(await read(new Map(files).set(middle, other.get(middle)!)), LONGER, 'another log’s segment'),
      'corrupt',
    );
    const renamed = new Map(without).set(segmentName(32), files.get(middle)!);
    assert.equal(judge(await read(renamed), LONGER, 'a segment under another name'), 'corrupt');
    assert.ok((await read(new Map(files).set('notes.txt', Buffer.from('x')))).error instanceof CorruptionError);
    // without the first segments, as after a trim
    without.delete(names[0]!);
    const rest = await read(without);
    assert.equal(rest.error, undefined);
    assert.deepEqual(rest.payloads, LONGER.slice(-rest.payloads.length));
  });

  test('frames of this log inside a value are values', async () => {
    const first = await writeLog([payload(600, 1)], 8192);
    const stolen = first.get(segmentName(0))!.subarray(0, 1024);
    const files = await writeLog([stolen, payload(40, 2), stolen], 8192);
    const outcome = await read(files);
    assert.deepEqual(outcome.payloads, [stolen, payload(40, 2), stolen]);
    // even a copy of this very log's frames after a torn tail: they have another position
    const name = segmentName(0);
    const whole = files.get(name)!;
    const last = SEGMENT_HEADER_BYTES + frameBytes(1024) + frameBytes(40);
    const torn = damaged(files, name, (copy) => {
      copy.fill(0, last);
      whole.copy(copy, last + 512, SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES + 512);
    });
    assert.deepEqual((await read(torn)).payloads, [stolen, payload(40, 2)]);
  });

  test('a segment of a later version is refused with a message', async () => {
    const files = await writeLog([payload(10, 1)], 4096);
    for (const [offset, value] of [
      [8, 2],
      [12, 1],
    ] as const) {
      const later = damaged(files, segmentName(0), (copy) => {
        copy[offset] = value;
        copy.writeUInt32LE(crc32c(copy.subarray(0, 60)), 60);
      });
      const { error } = await read(later);
      assert.ok(error instanceof BigtableError && error.code === Code.FAILED_PRECONDITION);
      assert.match(error.message, /this Edubba reads version 1 and no features/);
    }
  });

  test('reading from within skips frames without reading them, from any position', async () => {
    const files = await writeLog(WRITTEN, 4096);
    const positions: number[] = [];
    let position = 0;
    for (const bytes of WRITTEN) {
      positions.push(position);
      position += frameBytes(bytes.length);
    }
    for (let from = 0; from <= position; from += 8) {
      const expected = WRITTEN.filter((_, i) => positions[i]! >= from);
      const outcome = await read(files, from);
      assert.equal(outcome.error, undefined, `from ${from}`);
      assert.deepEqual(outcome.payloads, expected, `from ${from}`);
    }
  });
});

describe('the bytes of a segment', () => {
  test('golden: a segment header and two frames, as docs/formats/log-file.md shows them', async () => {
    const golden = Buffer.from(GOLDEN.replace(/\s/g, ''), 'hex');
    const nonce = Buffer.from('0102030405060708', 'hex');
    const frame = (position: number, bytes: Buffer): Buffer => {
      const header = encodeFrameHeader(
        { payloadBytes: bytes.length, position, payloadChecksum: crc32c(bytes) },
        nonce,
        crc32c,
      );
      return Buffer.concat([header, bytes, encodeFrameEnd(bytes.length)]);
    };
    const written = Buffer.concat([
      encodeSegmentHeader({ nonce, base: 96 }, crc32c),
      frame(96, Buffer.from('tablet')),
      frame(160, Buffer.from('house')),
    ]);
    assert.equal(written.toString('hex'), golden.toString('hex'));
    const files = new Map([[segmentName(96), Buffer.concat([golden, Buffer.alloc(64)])]]);
    assert.deepEqual((await read(files)).payloads.map(String), ['tablet', 'house']);
  });

  test('golden: a segment header with the end of its frames; a log of an earlier version has 0', () => {
    const nonce = Buffer.from('0102030405060708', 'hex');
    const bytes = encodeSegmentHeader({ nonce, base: 96, written: 224 }, crc32c);
    assert.equal(bytes.toString('hex'), MARKED.replace(/\s/g, ''));
    assert.deepEqual(decodeSegmentHeader(bytes, 'x', crc32c), { nonce, base: 96, written: 224 });
    assert.equal(
      decodeSegmentHeader(Buffer.from(GOLDEN.replace(/\s/g, ''), 'hex').subarray(0, 64), 'x', crc32c).written,
      0,
    );
  });

  test('a frame can be torn where a sector is all zero', () => {
    assert.equal(isZero(Buffer.alloc(200_000)), true);
    assert.equal(isZero(Buffer.alloc(200_000).fill(1, 199_999)), false);
    const frame = Buffer.alloc(2048, 1);
    assert.equal(mayBeTorn(frame, 64), false);
    frame.fill(0, 448, 448 + 511);
    assert.equal(mayBeTorn(frame, 64), false, 'a sector with one byte written was written');
    frame.fill(0, 448, 448 + 512);
    assert.equal(mayBeTorn(frame, 64), true);
    assert.equal(mayBeTorn(Buffer.alloc(FRAME_HEADER_BYTES, 1), 512), false);
  });
});
