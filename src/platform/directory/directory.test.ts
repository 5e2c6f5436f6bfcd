import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { BigtableError, Code, CorruptionError, codeName, crc32c } from '../../base/index.ts';
import { openDirectory } from './directory.ts';
import { formatText, parseFormat } from './format-file.ts';

const OPTIONS = { checksum: crc32c };

/** The example of docs/formats/directory.md. */
const GOLDEN = `edubba directory
version 1
requires 00000000
identity 00112233445566778899aabbccddeeff
checksum db3a86c7
`;

describe('a database directory', () => {
  test('is made with its parents, keeps its identity and its files, and is owned while it is open', async (t) => {
    const directory = join(temporaryDirectory(t), 'a', 'b');
    const opened = await openDirectory(directory, OPTIONS);
    assert.match(opened.identity, /^[0-9a-f]{32}$/);
    assert.deepEqual(fs.readdirSync(directory).sort(), ['EDUBBA', 'LOCK', 'files', 'logs', 'tmp']);
    const writer = await opened.fileSystem.create('f');
    await writer.close();
    const refusal = await fails(openDirectory(directory, OPTIONS), Code.FAILED_PRECONDITION);
    assert.match(refusal.message, /is open in this very process, since \d{4}-/);
    await opened.release();
    const again = await openDirectory(directory, OPTIONS);
    assert.equal(again.identity, opened.identity);
    assert.deepEqual(await again.fileSystem.list(''), [{ path: 'f', sizeBytes: 0 }]);
    await again.release();
    const other = await openDirectory(join(temporaryDirectory(t), 'other'), OPTIONS);
    assert.notEqual(other.identity, opened.identity);
    await other.release();
  });

  test('where no directory can be made the start fails, also where the system reports a missing name though the parent exists', {
    timeout: 60_000,
  }, async () => {
    await assert.rejects(openDirectory('/proc/edubba', OPTIONS), BigtableError);
    await assert.rejects(openDirectory('/proc/edubba/deeper', OPTIONS), BigtableError);
  });

  test('of two that make the same directory concurrently one owns it', async (t) => {
    const directory = join(temporaryDirectory(t), 'a', 'b', 'c');
    const outcomes = await Promise.allSettled([openDirectory(directory, OPTIONS), openDirectory(directory, OPTIONS)]);
    const opened = outcomes.filter((outcome) => outcome.status === 'fulfilled');
    assert.equal(opened.length, 1);
    await opened[0]?.value.release();
  });

  test('a directory with other content is refused and left unchanged', async (t) => {
    const directory = temporaryDirectory(t);
    fs.writeFileSync(join(directory, 'thesis.tex'), 'x');
    const refusal = await fails(openDirectory(directory, OPTIONS), Code.FAILED_PRECONDITION);
    assert.match(refusal.message, /not an Edubba directory: it has no file EDUBBA but holds "thesis.tex"/);
    assert.deepEqual(fs.readdirSync(directory).sort(), ['LOCK', 'thesis.tex']);
    fs.rmSync(join(directory, 'thesis.tex'));
    await (await openDirectory(directory, OPTIONS)).release();
  });

  test('a file system’s own lost+found, and the remains of a crash while it was made, are not other content', async (t) => {
    const directory = temporaryDirectory(t);
    fs.mkdirSync(join(directory, 'lost+found'));
    fs.writeFileSync(join(directory, 'LOCK'), '');
    fs.writeFileSync(join(directory, 'EDUBBA.new'), 'edubba dir');
    await (await openDirectory(directory, OPTIONS)).release();
    assert.ok(!fs.existsSync(join(directory, 'EDUBBA.new')));
  });

  test('a directory without its format file is refused: the format of its files is unknown', async (t) => {
    const directory = temporaryDirectory(t);
    await (await openDirectory(directory, OPTIONS)).release();
    fs.rmSync(join(directory, 'EDUBBA'));
    await fails(openDirectory(directory, OPTIONS), Code.FAILED_PRECONDITION);
  });

  test('a path that is a file is refused', async (t) => {
    const file = join(temporaryDirectory(t), 'file');
    fs.writeFileSync(file, '');
    for (const path of [file, join(file, 'below'), join(file, 'below', 'deeper')]) {
      const { message } = await fails(openDirectory(path, OPTIONS), Code.FAILED_PRECONDITION);
      assert.ok(message.includes(`${file} is a file`), message);
    }
  });

  test('a refused format releases the lock', async (t) => {
    const directory = temporaryDirectory(t);
    fs.writeFileSync(join(directory, 'EDUBBA'), formatText('directory', '00'.repeat(16), 2));
    for (let i = 0; i < 2; i++)
      assert.match((await fails(openDirectory(directory, OPTIONS), Code.FAILED_PRECONDITION)).message, /version 2/);
    assert.deepEqual(fs.readdirSync(directory).sort(), ['EDUBBA', 'LOCK']);
  });
});

describe('the format file', () => {
  test('golden', () => {
    assert.equal(formatText('directory', '00112233445566778899aabbccddeeff'), GOLDEN);
    assert.equal(parseFormat(GOLDEN, 'EDUBBA', 'directory'), '00112233445566778899aabbccddeeff');
    // the example of docs/formats/shared-store.md
    const store = GOLDEN.replace('directory', 'store').replace(/checksum .*/, 'checksum 2ae219f8');
    assert.equal(formatText('store', '00112233445566778899aabbccddeeff'), store);
  });

  test('later versions and unknown features are refused with a message', () => {
    const identity = '00'.repeat(16);
    const refused = (text: string, words: RegExp): void => {
      assert.throws(
        () => parseFormat(text, 'EDUBBA', 'directory'),
        (error) => {
          return error instanceof BigtableError && error.code === Code.FAILED_PRECONDITION && words.test(error.message);
        },
      );
    };
    refused(formatText('directory', identity, 2), /version 2 .* knows version 1/);
    refused(formatText('directory', identity, 1, 0x80000001), /requires the features 80000001/);
  });

  test('a store that many machines share is no directory of one process, and the other way round', () => {
    const identity = '00'.repeat(16);
    assert.equal(parseFormat(formatText('store', identity), 'EDUBBA', 'store'), identity);
    for (const [is, wanted] of [
      ['store', 'directory'],
      ['directory', 'store'],
    ] as const)
      assert.throws(() => parseFormat(formatText(is, identity), 'EDUBBA', wanted), { codeName: 'FAILED_PRECONDITION' });
  });

  test('every flipped bit and every truncation is corruption', () => {
    const golden = Buffer.from(GOLDEN, 'latin1');
    const corrupt = (bytes: Buffer, what: string): void => {
      assert.throws(
        () => parseFormat(bytes.toString('latin1'), 'EDUBBA', 'directory'),
        (error) => error instanceof CorruptionError && error.file === 'EDUBBA',
        what,
      );
    };
    for (let at = 0; at < golden.length; at++) {
      corrupt(golden.subarray(0, at), `cut to ${at}`);
      for (let bit = 0; bit < 8; bit++) {
        const copy = Buffer.from(golden);
        copy[at] = copy[at]! ^ (1 << bit);
        corrupt(copy, `byte ${at} bit ${bit}`);
      }
    }
  });
});

function temporaryDirectory(t: TestContext): string {
  const directory = fs.mkdtempSync(join(tmpdir(), 'edubba-directory-'));
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

async function fails(call: Promise<unknown>, code: Code): Promise<BigtableError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof BigtableError, `expected a BigtableError, not ${error}`);
  assert.equal(codeName(error.code), codeName(code), error.message);
  return error;
}
