import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code, CorruptionError, crc32c } from '../base/index.ts';
import { ManualClock, Metrics } from '../env/index.ts';
import { CursorState, columnKey, type Entry, EntryKind } from '../model/index.ts';
import { Block } from './read/block.ts';
import { BlockCursor } from './read/block-cursor.ts';
import {
  decodeDirectory,
  decodeFooter,
  encodeFooter,
  FOOTER_BYTES,
  type Footer,
  TRAILER_BYTES,
} from './format/format.ts';
import {
  CODECS,
  deletion,
  fileBytes,
  fileSystemWith,
  openFile,
  PATH,
  plain,
  put,
  scan,
  settle,
  sortedEntries,
  writeFile,
} from './fixtures.ts';
import { SeekTarget } from './format/seek-target.ts';

const ENTRIES: Entry[] = [
  deletion(EntryKind.rowDeletion, 'a', ''),
  deletion(EntryKind.rangeDeletion, 'a', columnKey('f', ''), 3, 9),
  put('a', columnKey('f', ''), 20, 'first'),
  put('a', columnKey('f', ''), 10, 'second'),
  put('ab', columnKey('f', 'x'), -5, ''),
  {
    row: 'b',
    column: columnKey('g', 'y'),
    kind: EntryKind.merge,
    timestamp: 2n ** 62n,
    value: Buffer.from('state'),
    rangeEnd: undefined,
  },
  put('b', columnKey('h', 'z'), 1, 'v'.repeat(90)),
];
const DELETIONS = [{ start: 'c', end: undefined }];

function smallFile(): ReturnType<typeof writeFile> {
  return writeFile(ENTRIES, { blockSizeBytes: 64, rowRangeDeletions: DELETIONS });
}

/** The same with all optional parts of a file, its blocks compressed. */
function fullFile(): ReturnType<typeof writeFile> {
  const entries = [
    ...ENTRIES,
    put('c', columnKey('f', 'x'), 1, 'abcd'.repeat(60)),
    put('d', columnKey('f', 'x'), 1, 'dcba'.repeat(60)),
  ];
  return writeFile(entries, {
    blockSizeBytes: 300,
    rowRangeDeletions: DELETIONS,
    compression: { kind: 'lz4' },
    bloomFilter: 'row-column',
    newest: { epoch: 4, sequence: 9 },
  });
}

async function readAll(bytes: Uint8Array): Promise<{ entries: Entry[]; deletions: unknown; properties: unknown }> {
  const table = await openFile({
    fileSystem: await fileSystemWith(bytes),
    clock: new ManualClock(),
    metrics: new Metrics(),
  });
  return { entries: await scan(table.cursor()), deletions: table.rowRangeDeletions(), properties: table.properties };
}

/** The file with another footer, its checksum right. */
function withFooter(bytes: Buffer, change: Partial<Footer>): Buffer {
  const footer = decodeFooter(PATH, bytes.length, bytes.subarray(-FOOTER_BYTES), crc32c);
  return Buffer.concat([bytes.subarray(0, -FOOTER_BYTES), encodeFooter({ ...footer, ...change }, crc32c)]);
}

/** Overwrites bytes of a part and corrects its checksum. */
function forged(bytes: Buffer, offset: number, lengthBytes: number, change: (part: Buffer) => void): Buffer {
  const copy = Buffer.from(bytes);
  const part = copy.subarray(offset, offset + lengthBytes + 1);
  change(part);
  copy.writeUInt32BE(crc32c(part), offset + lengthBytes + 1);
  return copy;
}

describe('a damaged SSTable', () => {
  test('with any byte changed is a CorruptionError that names the file and an offset in it', async () => {
    for (const file of [await smallFile(), await fullFile()]) await everyByteChanged(await fileBytes(file.fileSystem));
  });

  async function everyByteChanged(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length; at++) {
      for (const mask of [0xff, 1 << (at % 8)]) {
        const damaged = Buffer.from(bytes);
        damaged[at] = (damaged[at] as number) ^ mask;
        await assert.rejects(readAll(damaged), (error: unknown) => {
          assert.ok(error instanceof CorruptionError, `byte ${at}: ${String(error)}`);
          assert.equal(error.file, PATH);
          assert.ok(error.offset >= 0 && error.offset <= bytes.length);
          return true;
        });
      }
    }
  }

  test('cut at any length is a CorruptionError, and so is one with bytes after its end', async () => {
    const bytes = await fileBytes((await fullFile()).fileSystem);
    for (let length = 0; length < bytes.length; length++) {
      await assert.rejects(readAll(bytes.subarray(0, length)), CorruptionError, `${length} bytes`);
    }
    await assert.rejects(readAll(Buffer.concat([bytes, Buffer.alloc(1)])), CorruptionError);
    await assert.rejects(readAll(Buffer.concat([bytes, bytes])), CorruptionError);
    await assert.rejects(readAll(Buffer.concat([Buffer.alloc(3), bytes])), CorruptionError);
  });

  test('with one block damaged still yields the others', async () => {
    const file = await smallFile();
    const table = await openFile(file);
    file.fileSystem.damage(PATH, (table.blockBoundaries()[1]?.offsetBytes ?? 0) + 3);
    const cursor = table.cursor();
    cursor.seekRow('b');
    await settle(cursor);
    assert.equal(cursor.row, 'b');
    await assert.rejects(scan(table.cursor()), CorruptionError);
    await assert.rejects(table.verify(), CorruptionError);
    // a later attempt finds the same, and the cursor still needs the block
    const other = table.cursor();
    for (other.seekRow(''); other.state === CursorState.ready; ) other.next();
    await assert.rejects(settle(other), CorruptionError);
    await assert.rejects(settle(other), CorruptionError);
  });

  test('cut after it was opened is a CorruptionError', async () => {
    const file = await smallFile();
    const table = await openFile(file);
    const bytes = await fileBytes(file.fileSystem);
    await file.fileSystem.delete(PATH);
    const writer = await file.fileSystem.create(PATH);
    await writer.append(bytes.subarray(0, 10));
    await writer.close();
    await assert.rejects(
      scan(table.cursor()),
      (error: unknown) => error instanceof CorruptionError && /ends too early/.test(error.message),
    );
  });
});

describe('an SSTable for another program', () => {
  const refused =
    (pattern: RegExp) =>
    (error: unknown): boolean =>
      error instanceof BigtableError && error.code === Code.FAILED_PRECONDITION && pattern.test(error.message);

  test('is refused with a message: version, features, codec', async () => {
    const bytes = await fileBytes((await smallFile()).fileSystem);
    await assert.rejects(readAll(withFooter(bytes, { formatVersion: 2 })), refused(/format version 2/));
    await assert.rejects(readAll(withFooter(bytes, { requiredFeatures: 0x8000_0001 })), refused(/features 0x80000000/));
    const block = (await openFile(await smallFile())).blockBoundaries()[1]?.offsetBytes ?? 0;
    const coded = forged(bytes, 0, block - TRAILER_BYTES, (part) => part.writeUInt8(99, part.length - 1));
    await assert.rejects(readAll(coded), refused(/codec 99/));
    const properties = decodeDirectoryOf(bytes)[1];
    assert.ok(properties);
    const codedSection = forged(bytes, properties.offset, properties.lengthBytes, (part) =>
      part.writeUInt8(1, part.length - 1),
    );
    await assert.rejects(readAll(codedSection), refused(/codec 1/));
  });

  test('with optional features or sections that are unknown is read', async () => {
    const bytes = await fileBytes((await smallFile()).fileSystem);
    assert.deepEqual((await readAll(withFooter(bytes, { optionalFeatures: 0xffff_ffff }))).entries, ENTRIES.map(plain));
    // one more section between the last one and the directory
    const footer = decodeFooter(PATH, bytes.length, bytes.subarray(-FOOTER_BYTES), crc32c);
    const { offset, lengthBytes } = footer.directory;
    const sections = decodeDirectory(PATH, footer.directory, bytes.subarray(offset, offset + lengthBytes));
    assert.equal(sections.length, 3);
    const extra = Buffer.from([1, 2, 3, 0, 0, 0, 0, 0]);
    const name = Buffer.from('\x05later', 'latin1');
    const offsetVarint = Buffer.from([(offset % 128) | 128, offset >> 7]);
    const before = bytes.subarray(offset + 1, offset + lengthBytes);
    const directory = Buffer.concat([Buffer.from([4]), before, name, offsetVarint, Buffer.from([3]), Buffer.alloc(5)]);
    directory.writeUInt32BE(crc32c(directory.subarray(0, -4)), directory.length - 4);
    const end = encodeFooter(
      {
        ...footer,
        directory: { offset: offset + extra.length, lengthBytes: directory.length - TRAILER_BYTES },
        fileBytes: offset + extra.length + directory.length + FOOTER_BYTES,
      },
      crc32c,
    );
    const read = await readAll(Buffer.concat([bytes.subarray(0, offset), extra, directory, end]));
    assert.deepEqual(read.entries, ENTRIES.map(plain));
    assert.deepEqual(read.deletions, DELETIONS);
  });

  test('whose parts contradict each other under right checksums is a CorruptionError', async () => {
    const bytes = await fileBytes((await smallFile()).fileSystem);
    const footer = decodeFooter(PATH, bytes.length, bytes.subarray(-FOOTER_BYTES), crc32c);
    const { offset, lengthBytes } = footer.directory;
    const sections = decodeDirectory(PATH, footer.directory, bytes.subarray(offset, offset + lengthBytes));
    const [index, properties, deletions] = sections;
    assert.ok(index && properties && deletions);
    const cases: [string, Buffer][] = [
      [
        'a section that overlaps',
        forged(bytes, offset, lengthBytes, (part) => part.writeUInt8(part.readUInt8(8) ^ 1, 8)),
      ],
      ['no such section', forged(bytes, offset, lengthBytes, (part) => part.write('Index', 2))],
      ['more sections than there are', forged(bytes, offset, lengthBytes, (part) => part.writeUInt8(9, 0))],
      ['more blocks than there are', forged(bytes, index.offset, index.lengthBytes, (part) => part.writeUInt8(100, 0))],
      ['fewer blocks', forged(bytes, index.offset, index.lengthBytes, (part) => part.writeUInt8(1, 0))],
      [
        'another version of properties',
        forged(bytes, properties.offset, properties.lengthBytes, (part) => part.writeUInt8(2, 0)),
      ],
      [
        'another number of rows deleted',
        forged(bytes, deletions.offset, deletions.lengthBytes, (part) => part.writeUInt8(2, 0)),
      ],
      ['a file of another size', withFooter(bytes, { fileBytes: bytes.length + 1 })],
      ['a directory elsewhere', withFooter(bytes, { directory: { offset: offset - 1, lengthBytes } })],
    ];
    for (const [what, forgery] of cases) await assert.rejects(readAll(forgery), CorruptionError, what);
  });

  test('whose compressed blocks, filter and index contradict each other is a CorruptionError', async () => {
    const bytes = await fileBytes((await fullFile()).fileSystem);
    const [bloom, index, properties] = decodeDirectoryOf(bytes);
    assert.ok(bloom && index && properties);
    assert.deepEqual([bloom.name, index.name], ['bloom', 'index']);
    const footer = decodeFooter(PATH, bytes.length, bytes.subarray(-FOOTER_BYTES), crc32c);
    assert.equal(footer.requiredFeatures, 1);
    const table = await openFile({
      fileSystem: await fileSystemWith(bytes),
      clock: new ManualClock(),
      metrics: new Metrics(),
    });
    const [, second, third] = table.blockBoundaries();
    assert.ok(second && third);
    const lengthBytes = third.offsetBytes - second.offsetBytes - TRAILER_BYTES;
    const at = second.offsetBytes;
    const cases: [string, Buffer][] = [
      ['compressed blocks that the footer does not know of', withFooter(bytes, { requiredFeatures: 0 })],
      [
        'a compressed block declared as not compressed',
        forged(bytes, at, lengthBytes, (part) => part.writeUInt8(0, part.length - 1)),
      ],
      ['a block of another codec', forged(bytes, at, lengthBytes, (part) => part.writeUInt8(2, part.length - 1))],
      [
        'a block with another raw length',
        forged(bytes, at, lengthBytes, (part) => part.writeUInt8(part.readUInt8(0) ^ 1, 0)),
      ],
      ['a block that says it is long', forged(bytes, at, lengthBytes, (part) => part.fill(0xff, 0, 7))],
      ['an unknown kind of filter', forged(bytes, bloom.offset, bloom.lengthBytes, (part) => part.writeUInt8(9, 0))],
      ['another kind of filter', forged(bytes, bloom.offset, bloom.lengthBytes, (part) => part.writeUInt8(1, 0))],
      ['a filter of more lines', forged(bytes, bloom.offset, bloom.lengthBytes, (part) => part.writeUInt8(100, 2))],
      [
        'no kind of compression',
        forged(bytes, properties.offset, properties.lengthBytes, (part) => part.write('lz5', part.indexOf('lz4'))),
      ],
      [
        'no kind of filter',
        forged(bytes, properties.offset, properties.lengthBytes, (part) =>
          part.write('Row', part.indexOf('row-column')),
        ),
      ],
      [
        'other bytes of blocks',
        forged(bytes, properties.offset, properties.lengthBytes, (part) =>
          part.writeUInt8(1, part.indexOf('blockRawBytes') + 14),
        ),
      ],
      [
        'families that go back',
        forged(bytes, properties.offset, properties.lengthBytes, (part) =>
          part.write('z', part.indexOf('families') + 11),
        ),
      ],
    ];
    for (const [what, forgery] of cases) await assert.rejects(readAll(forgery), CorruptionError, what);
  });

  test('verify finds a filter that excludes a row of the file', async () => {
    const bytes = await fileBytes((await fullFile()).fileSystem);
    const [bloom] = decodeDirectoryOf(bytes);
    assert.ok(bloom);
    const emptied = forged(bytes, bloom.offset, bloom.lengthBytes, (part) => part.fill(0, 3, part.length - 1));
    const table = await openFile({
      fileSystem: await fileSystemWith(emptied),
      clock: new ManualClock(),
      metrics: new Metrics(),
    });
    await assert.rejects(
      table.verify(),
      (error: unknown) =>
        error instanceof CorruptionError && error.offset === bloom.offset && /filter/.test(error.message),
    );
  });

  test('verify finds damage that reading cannot: order, restart points, counts, bounds', async () => {
    const entries = Array.from({ length: 40 }, (_, i) =>
      put('row', columnKey('f', String.fromCharCode(48 + i)), 1, 'x'),
    );
    const file = await writeFile(entries);
    const bytes = await fileBytes(file.fileSystem);
    const sections = decodeDirectoryOf(bytes);
    const blockBytes = (sections[0]?.offset ?? 0) - TRAILER_BYTES;
    const verified = async (forgery: Buffer): Promise<unknown> =>
      (
        await openFile({ fileSystem: await fileSystemWith(forgery), clock: new ManualClock(), metrics: new Metrics() })
      ).verify();
    assert.deepEqual(await verified(bytes), { blocks: 1, entries: 40, blockBytes });
    const swapped = forged(bytes, 0, blockBytes, (part) => {
      const second = part.indexOf(Buffer.from('1', 'latin1'));
      part.writeUInt8('9'.charCodeAt(0), second);
    });
    await assert.rejects(
      verified(swapped),
      (error: unknown) => error instanceof CorruptionError && /out of order/.test(error.message),
    );
    const fewerRestarts = forged(bytes, 0, blockBytes, (part) =>
      part.writeUInt32BE(part.readUInt32BE(blockBytes - 8) + 1, blockBytes - 8),
    );
    await assert.rejects(
      verified(fewerRestarts),
      (error: unknown) => error instanceof CorruptionError && /restart point/.test(error.message),
    );
    const [, properties] = sections;
    assert.ok(properties);
    const wrongRows = forged(bytes, properties.offset, properties.lengthBytes, (part) =>
      part.writeUInt8(7, part.indexOf('rows') + 5),
    );
    await assert.rejects(
      verified(wrongRows),
      (error: unknown) => error instanceof CorruptionError && /"rows"/.test(error.message),
    );
  });
});

describe('verify', () => {
  /** Puts `to` in place of the last `from` in a section. */
  function replaced(bytes: Buffer, name: string, from: string, to: string): Buffer {
    const section = decodeDirectoryOf(bytes).find((each) => each.name === name);
    assert.ok(section);
    return forged(bytes, section.offset, section.lengthBytes, (part) => {
      const at = part.lastIndexOf(Buffer.from(from, 'latin1'));
      assert.ok(at >= 0);
      part.write(to, at, 'latin1');
    });
  }

  async function verified(bytes: Buffer): Promise<unknown> {
    return (
      await openFile({ fileSystem: await fileSystemWith(bytes), clock: new ManualClock(), metrics: new Metrics() })
    ).verify();
  }

  test('finds an index and properties that agree with each other and not with the blocks', async () => {
    const bytes = await fileBytes(
      (await writeFile([put('row-a', columnKey('f', ''), 1), put('row-b', columnKey('f', ''), 1)])).fileSystem,
    );
    await verified(bytes);
    const otherLast = replaced(replaced(bytes, 'index', 'row-b', 'row-c'), 'properties', 'row-b', 'row-c');
    await assert.rejects(verified(otherLast), /not the last row that the index tells/);
    const otherFirst = replaced(replaced(bytes, 'index', 'row-a', 'row-0'), 'properties', 'row-a', 'row-0');
    await assert.rejects(verified(otherFirst), /not the first entry that the index tells/);
    const otherCount = replaced(replaced(bytes, 'index', '\x02', '\x03'), 'properties', 'put\x01\x02', 'put\x01\x03');
    await assert.rejects(verified(otherCount), /2 entries, 3 in the index/);
  });
});

function decodeDirectoryOf(bytes: Buffer): ReturnType<typeof decodeDirectory> {
  const { directory } = decodeFooter(PATH, bytes.length, bytes.subarray(-FOOTER_BYTES), CODECS.checksum);
  return decodeDirectory(PATH, directory, bytes.subarray(directory.offset, directory.offset + directory.lengthBytes));
}

describe('a malformed block with a right checksum', () => {
  test('is walked and sought to an end or a CorruptionError, never anything else', async () => {
    await fc.assert(
      fc.asyncProperty(
        sortedEntries,
        fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 4 }),
        fc.string({ maxLength: 3 }),
        async (entries, damages, row) => {
          fc.pre(entries.length > 0);
          const bytes = await fileBytes((await writeFile(entries, { blockSizeBytes: 4000 })).fileSystem);
          const end = decodeDirectoryOf(bytes)[0]?.offset ?? 0;
          const body = Buffer.from(bytes.subarray(0, end - TRAILER_BYTES));
          for (const [at, byte] of damages) body[at % body.length] = byte;
          try {
            const block = new Block(PATH, 0, body);
            const cursor = new BlockCursor();
            cursor.open(block);
            let steps = 0;
            for (; cursor.next(); steps++)
              assert.ok(cursor.row.length + cursor.column.length + cursor.value().length <= 10_000);
            assert.ok(steps <= body.length);
            const target = new SeekTarget();
            target.set(row);
            cursor.seek(target);
            cursor.lastRowBelow(row);
          } catch (error) {
            assert.ok(error instanceof CorruptionError, String(error));
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  test('a value that runs into the restart points is a CorruptionError', async () => {
    const bytes = await fileBytes((await writeFile([put('a', columnKey('f', ''), 0, 'x')])).fileSystem);
    // flags, row, column, then the value's length
    const body = bytes.subarray(0, 8 + 8);
    const walk = (): boolean => {
      const cursor = new BlockCursor();
      cursor.open(new Block(PATH, 0, body));
      return cursor.next();
    };
    assert.equal(walk(), true);
    assert.equal(body[6], 1);
    body[6] = 2;
    assert.throws(walk, CorruptionError);
  });

  test('an empty block, or one of restart points only, is a CorruptionError', () => {
    for (const bytes of [[], [0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 0, 1], [255, 255, 255, 255]]) {
      assert.throws(() => new Block(PATH, 0, Buffer.from(bytes)), CorruptionError);
    }
  });
});
