/** `edubba inspect check`, `edubba inspect repair` and `edubba stats`, as a user runs them. */
import assert from 'node:assert/strict';
import { copyFile, cp, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { openForInspection } from '../../src/boot/index.ts';
import { describeSsTable } from '../../src/sstable/index.ts';
import { documents, edubba, output } from '../cli/run.ts';
import { copyOf, fillDatabase, filesIn, flip, PAGES, temporaryDirectory } from './damage.ts';

describe('the commands over a damaged database', () => {
  let home: Awaited<ReturnType<typeof temporaryDirectory>>;
  let directory: string;
  const alive = setInterval(() => {}, 1000);
  before(async () => {
    home = await temporaryDirectory();
    directory = join(home.path, 'data');
    await (await fillDatabase(directory)).close();
  });
  after(async () => {
    clearInterval(alive);
    await home.remove();
  });

  test('check says that all is well, in words and in JSON', async () => {
    assert.match(
      await output(['--dir', directory, 'inspect', 'check']),
      /checked 2 tables in 5 tablets, \d+ SSTables of \d+ bytes with \d+ entries, 1 log with .*\nall is as it was written\n$/,
    );
    const last = documents(await output(['inspect', 'check', '--dir', directory, '--json'])).at(-1);
    assert.deepEqual([last?.['kind'], last?.['damaged'], last?.['tables']], ['checked', false, 2]);
  });

  test('check counts what waits for clean-up in one line, and lists it on request', async () => {
    const copy = await copyOf(directory, join(home.path, 'left'));
    // files that a compaction has replaced come back, and a log that no tablet lists
    const before = await filesIn(copy);
    await output(['--dir', copy, 'compact', 'pages']);
    const after = new Set(await filesIn(copy));
    for (const path of before)
      if (path.startsWith('files/sstables/') && !after.has(path))
        await copyFile(join(directory, path), join(copy, path));
    const segment = [...after].find((path) => path.startsWith('logs/logs/')) as string;
    await cp(dirname(join(copy, segment)), join(copy, 'logs/logs/unknown'), { recursive: true });
    const orphans = documents(await output(['--dir', copy, 'inspect', 'check', '--json'])).filter(
      ({ kind }) => kind === 'orphan',
    );
    const files = orphans.map(({ file }) => file as string);
    const logs = files.filter((file) => file.startsWith('logs/')).length;
    assert.ok(logs > 0 && logs < files.length, files.join(' '));
    const text = await output(['--dir', copy, 'inspect', 'check']);
    const lines = text.split('\n').filter((line) => line.includes('clean-up'));
    assert.equal(lines.length, 1, text);
    assert.match(
      lines[0] as string,
      new RegExp(
        `^${logs} old logs? and ${files.length - logs} unused SSTables? wait for clean-up by a server, which is no damage`,
      ),
    );
    assert.match(text, /\nall is as it was written\n$/);
    for (const file of files) assert.ok(!text.includes(file), text);
    const all = await output(['--dir', copy, 'inspect', 'check', '--verbose']);
    for (const file of files) assert.ok(all.includes(`waits for clean-up: ${file}\n`), all);
  });

  test('check names file and byte of each damage, and ends with status 1', async () => {
    const copy = await copyOf(directory, join(home.path, 'flipped'));
    const path = (await filesIn(copy)).find((each) => each.startsWith('files/sstables/')) as string;
    const source = await openForInspection(copy);
    const offset = (await describeSsTable(source, path.slice('files/'.length))).blocks[0]?.offset as number;
    await source.close();
    await flip(join(copy, path), offset + 2);
    const { status, out, err } = await edubba(['--dir', copy, 'inspect', 'check']);
    assert.equal(status, 1);
    assert.ok(out.includes(`damaged: ${path.slice('files/'.length)}, byte ${offset}: `), out);
    assert.match(err, /DATA_LOSS: 1 finding in /);
    const json = await edubba(['--dir', copy, '--json', 'inspect', 'check']);
    assert.deepEqual(
      documents(json.out)
        .filter(({ kind }) => kind === 'finding')
        .map(({ file, offset: at }) => [file, at]),
      [[path.slice('files/'.length), offset]],
    );
  });

  test('repair writes a database that can be read, elsewhere or in place, and asks to be told which', async () => {
    const copy = await copyOf(directory, join(home.path, 'lost'));
    const small = (await filesIn(copy)).filter((path) => path.startsWith('files/lock-service/files/'));
    for (const path of small)
      if ((await readFile(join(copy, path))).subarray(36, 41).toString() === 'root{') await rm(join(copy, path));
    const refused = await edubba(['--dir', copy, 'inspect', 'repair']);
    assert.equal(refused.status, 1);
    assert.match(refused.err, /INVALID_ARGUMENT: say where .* --write-to NEWDIR/);
    const elsewhere = join(home.path, 'repaired');
    const report = await output(['--dir', copy, 'inspect', 'repair', '--write-to', elsewhere]);
    assert.match(
      report,
      /table 00000010 projects\/local\/instances\/local\/tables\/pages: 2 tablets, \d+ SSTables, \d+ records? of logs replayed/,
    );
    assert.match(report, /everything was saved\n$/);
    assert.equal((await edubba(['--dir', copy, 'inspect', 'check'])).status, 1, 'the damaged one is as it was');
    assert.match(await output(['--dir', copy, 'inspect', 'repair', '--yes']), /everything was saved\n$/);
    for (const repaired of [elsewhere, copy]) {
      await output(['--dir', repaired, 'inspect', 'check']);
      assert.equal(await output(['--dir', repaired, 'count', 'pages']), `${PAGES - 2 + 1}\n`);
    }
    assert.match(
      (await edubba(['--dir', copy, 'inspect', 'repair', '--yes'])).err,
      /FAILED_PRECONDITION: nothing is damaged/,
    );
    assert.match(
      (await edubba(['--dir', copy, 'inspect', 'repair', '--write-to', elsewhere])).err,
      /ALREADY_EXISTS: .* holds a database already/,
    );
  });

  test('stats tells what each family takes', async () => {
    await output(['--dir', directory, 'compact', 'pages']);
    const [meta, text] = JSON.parse(await output(['--dir', directory, '--json', 'stats', 'pages'])) as Record<
      string,
      unknown
    >[];
    const row = 'page-0000'.length;
    const ofMeta = (PAGES - 2) * (row + 'meta\0length'.length + 8 + 60);
    assert.deepEqual([meta?.['family'], meta?.['cells'], meta?.['logicalBytes']], ['meta', PAGES - 2, ofMeta]);
    assert.deepEqual([text?.['family'], text?.['cells']], ['text', 2 * (PAGES - 2) + 1]);
    assert.ok(Number(text?.['diskBytes']) > 0 && Number(text?.['memoryBytes']) === 0, JSON.stringify(text));
    assert.match(
      await output(['--dir', directory, 'stats', 'pages']),
      /^Family {2}Cells {2}Logical bytes {2}Bytes on disk {2}Bytes in memory\nmeta +118/,
    );
  });
});
