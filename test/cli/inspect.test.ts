/** `edubba inspect` on real directories, with and without an owner, whole and damaged. */
import assert from 'node:assert/strict';
import { appendFile, copyFile, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { open, RowMutation } from '../../src/embedded/index.ts';
import { documents, edubba, output, temporaryDirectory } from './run.ts';

interface Files {
  readonly directory: string;
  readonly sstables: string[];
  readonly logs: string[];
}

async function filesIn(directory: string): Promise<Files> {
  const found = (await readdir(directory, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const paths = found.map((entry) => join(entry.parentPath ?? entry.path, entry.name)).sort();
  const below = (folder: string): string[] => paths.filter((path) => path.startsWith(join(directory, folder)));
  const sstables = below('files').filter((path) => !path.startsWith(join(directory, 'files', 'lock-service')));
  return { directory, sstables, logs: [...new Set(below('logs').map((path) => join(path, '..')))] };
}

/** A database with a table of three tablets, rows in files and later ones in the log alone. */
async function makeDatabase(directory: string): Promise<void> {
  const database = await open(directory);
  const table = await database.createTable('web', {
    families: { f: { maxVersions: 2 }, gone: {} },
    splits: ['g', 'p'],
  });
  for (const row of ['a', 'h', 'z'])
    await table.apply(new RowMutation(row).set('f:q', `value of ${row}`, 1000n).set('gone:x', 'y'));
  await table.apply(new RowMutation('a').set('f:bytes', Buffer.from([0xff, 0]), 1000n));
  await database.flush();
  await table.deleteRow('h');
  await table.increment('counter', 'f:n', 5);
  await table.deleteRows({ prefix: 'old' });
  await database.close();
}

async function database(t: TestContext): Promise<Files> {
  const directory = join(await temporaryDirectory(t), 'data');
  await makeDatabase(directory);
  return filesIn(directory);
}

/** Every file with its size, time and inode. */
async function snapshot(directory: string): Promise<string[]> {
  const names = (await readdir(directory, { recursive: true })).sort();
  return Promise.all(
    names.map(async (name) => {
      const { size, mtimeMs, ino } = await stat(join(directory, name));
      return `${name} ${size} ${mtimeMs} ${ino}`;
    }),
  );
}

async function flip(path: string, at: number): Promise<void> {
  const bytes = await readFile(path);
  bytes[at] = (bytes[at] as number) ^ 1;
  await writeFile(path, bytes);
}

describe('edubba inspect', () => {
  test('shows a whole database, every SSTable and every log, and changes nothing', async (t) => {
    const { directory, sstables, logs } = await database(t);
    await writeFile(join(directory, 'tmp', 'left-behind'), 'x');
    const before = await snapshot(directory);
    assert.ok(sstables.length >= 5 && logs.length === 1, `${sstables.length} SSTables, ${logs.length} logs`);

    const metadata = await output(['inspect', 'metadata', directory, '--verify', '--entries']);
    assert.match(metadata, /^database [0-9a-f]{32} in /);
    assert.match(
      metadata,
      /projects\/local\/instances\/local\/tables\/web, timestamps in micros\n {4}f: versions\(\) > 2\n {4}gone: <never>\n/,
    );
    for (const range of ['from the first to "g"', 'from "g" to "p"', 'from "p" to the last'])
      assert.ok(metadata.includes(`tables/web, rows ${range}`), metadata);
    for (const path of sstables)
      assert.ok(metadata.includes(`${relative(join(directory, 'files'), path)}: `), `${path} was not verified`);
    assert.match(metadata, /compacted, epoch 1/);
    assert.match(metadata, /5 tablets, \d+ SSTables, \d+ entries verified/);
    assert.match(metadata, /read without a lock/);
    assert.equal(
      await output(['inspect', 'metadata', sstables[0] as string]),
      await output(['inspect', 'metadata', directory]),
    );

    const tables = await Promise.all(
      sstables.map((path) => output(['inspect', 'sstable', path, '--verify', '--entries'])),
    );
    assert.ok(tables.some((text) => /"a" f:"q" put @ 1000 "value of a"\n/.test(text)));
    assert.ok(tables.some((text) => text.includes('"a" f:"bytes" put @ 1000 "\\xff\\x00"\n')));
    for (const text of tables)
      assert.match(text, /verified: 1 block, \d+ entr(y|ies), \d+ bytes: all is as it was written/);

    const log = await output(['inspect', 'log', logs[0] as string, '--entries']);
    assert.match(log, /table 00000010, .*: row "h", 1 deleteFromRow, 0 bytes of values\n {4}"h" deleteFromRow\n/);
    assert.match(log, /"counter" setCell f:"n" @ \d+ "\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05"/);
    assert.match(log, /drops rows from "old" to "ole"/);
    assert.match(log, /\nlog logs\/[0-9a-f]{32}: \d+ appends, \d+ records, 1 to \d+\n/);
    const [segment] = await readdir(logs[0] as string);
    assert.equal(await output(['inspect', 'log', join(logs[0] as string, segment as string), '--entries']), log);
    const sum = await output(['inspect', 'log', logs[0] as string, '--verify']);
    assert.ok(log.endsWith(sum) && sum.startsWith('log '), sum);
    assert.deepEqual(await snapshot(directory), before);
  });

  test('--json prints a document a line, and says the same', async (t) => {
    const { directory, sstables, logs } = await database(t);
    const metadata = documents(await output(['inspect', 'metadata', directory, '--verify', '--json']));
    assert.deepEqual([...new Set(metadata.map(({ kind }) => kind))].sort(), [
      'database',
      'table',
      'tablet',
      'verified',
    ]);
    const web = metadata.filter(({ kind, rowIn }) => kind === 'tablet' && rowIn === 'METADATA');
    assert.deepEqual(
      web.map(({ range }) => range),
      [{ start: '', end: 'g' }, { start: 'g', end: 'p' }, { start: 'p' }],
    );
    const verified = metadata.filter(({ kind }) => kind === 'verified').map(({ path }) => path as string);
    assert.deepEqual(
      verified.sort(),
      sstables.map((path) => relative(join(directory, 'files'), path)),
    );

    const entries: Record<string, unknown>[] = [];
    for (const path of sstables) {
      const [layout, ...rest] = documents(await output(['inspect', 'sstable', path, '--entries', '--json'])) as [
        { properties: { entries: Record<string, number> } },
        ...Record<string, unknown>[],
      ];
      assert.equal(
        rest.length,
        Object.values(layout.properties.entries).reduce((sum, count) => sum + count, 0),
      );
      entries.push(...rest);
    }
    const bytes = entries.find(({ qualifier }) => qualifier === 'bytes');
    assert.deepEqual(bytes, {
      row: 'a',
      family: 'f',
      qualifier: 'bytes',
      kind: 'put',
      timestamp: 1000,
      valueBase64: '/wA=',
    });

    const appends = documents(await output(['inspect', 'log', logs[0] as string, '--entries', '--json'])) as {
      records?: { sequence: number; rows?: { row: string }[] }[];
      appends?: number;
    }[];
    const sum = appends.pop();
    assert.equal(sum?.appends, appends.length);
    const sequences = appends.flatMap(({ records }) => records ?? []).map(({ sequence }) => sequence);
    assert.deepEqual(
      sequences,
      sequences.map((_, i) => i + 1),
    );
    assert.ok(appends.some(({ records }) => records?.[0]?.rows?.[0]?.row === 'h'));
  });

  test('works next to an owner that goes on writing', async (t) => {
    const directory = join(await temporaryDirectory(t), 'data');
    const owner = await open(directory);
    const table = await owner.createTable('t', { families: { f: {} } });
    let stop = false;
    const writing = (async () => {
      for (let i = 0; !stop; i++) {
        await table.apply(new RowMutation(`row ${i}`).set('f:q', 'x'.repeat(1000)));
        if (i % 50 === 49) await owner.flush();
      }
    })();
    try {
      for (let round = 0; round < 5; round++) {
        assert.match(await output(['inspect', 'metadata', directory]), /tables\/t, rows from the first to the last/);
        const { logs } = await filesIn(directory);
        await output(['inspect', 'log', logs[0] as string, '--verify']);
      }
    } finally {
      stop = true;
      await writing;
      await owner.close();
    }
  });

  test('damage is reported with file and position, with status 1', async (t) => {
    const { directory, sstables, logs } = await database(t);
    const users = await Promise.all(
      sstables.map(async (path) => ({ path, text: await output(['inspect', 'sstable', path, '--entries']) })),
    );
    const broken = users.find(({ text }) => text.includes('value of a'))?.path as string;
    await flip(broken, 12);
    const name = relative(join(directory, 'files'), broken);
    for (const words of [
      ['sstable', broken, '--verify'],
      ['sstable', broken, '--entries'],
      ['metadata', directory, '--verify'],
    ]) {
      const { status, err } = await edubba(['inspect', ...words]);
      assert.equal(status, 1, words.join(' '));
      assert.ok(err.startsWith(`edubba: DATA_LOSS: ${name}: corrupt at byte 0: `), err);
    }
    assert.equal((await edubba(['inspect', 'sstable', broken])).status, 0, 'the layout does not read blocks');

    const [segment] = await readdir(logs[0] as string);
    const file = join(logs[0] as string, segment as string);
    // a log that was closed has given its room back; one whose writer died has not
    await appendFile(file, Buffer.alloc(4096));
    const whole = await output(['inspect', 'log', file]);
    await flip(file, 64 + 32 + 20);
    const damaged = await edubba(['inspect', 'log', logs[0] as string]);
    assert.equal(damaged.status, 1);
    assert.match(damaged.err, /^edubba: DATA_LOSS: logs\/logs\/[0-9a-f]{32}\/0+\.segment: corrupt at byte 64: /);
    await flip(file, 64 + 32 + 20);

    // what a crash leaves of an append: its header and no end
    const end = Number(/ends at (\d+)/.exec(whole)?.[1]);
    const bytes = await readFile(file);
    bytes.copy(bytes, 64 + end + 1024, 64, 200);
    await writeFile(file, bytes);
    const torn = await output(['inspect', 'log', file]);
    assert.match(torn, /torn tail: 1\d{3} bytes after the end/);
    assert.equal(torn.split('  torn tail')[0], whole.split('  read without a lock')[0]);

    const [root] = (await readdir(join(directory, 'files', 'lock-service', 'files'))).map((entry) =>
      join(directory, 'files', 'lock-service', 'files', entry),
    );
    await flip(root as string, 40);
    const locks = await edubba(['inspect', 'metadata', directory]);
    assert.match(locks.err, /^edubba: DATA_LOSS: lock-service\/files\/\S+: corrupt at byte \d+: checksum/);
  });

  test('an SSTable is read wherever it lies; everything else must lie in a database', async (t) => {
    const { directory, sstables, logs } = await database(t);
    const elsewhere = await temporaryDirectory(t);
    await copyFile(sstables[0] as string, join(elsewhere, 'a copy'));
    assert.match(await output(['inspect', 'sstable', join(elsewhere, 'a copy'), '--verify']), /verified: /);
    const CASES: readonly [readonly string[], string, RegExp][] = [
      [['sstable', join(elsewhere, 'nothing')], 'NOT_FOUND', /file .*nothing not found/],
      [['sstable', directory], 'INVALID_ARGUMENT', /is a directory: name an SSTable/],
      [['sstable', join(directory, 'EDUBBA')], 'DATA_LOSS', /EDUBBA: corrupt at byte/],
      [['log', elsewhere], 'NOT_FOUND', /is not in a database/],
      [['log', directory], 'INVALID_ARGUMENT', /is not a log/],
      [['log', sstables[0] as string], 'INVALID_ARGUMENT', /is not a log/],
      [['log', join(directory, 'logs', 'logs')], 'NOT_FOUND', /not found/],
      [['metadata', elsewhere], 'NOT_FOUND', /is not in a database: no file EDUBBA/],
    ];
    for (const [words, code, message] of CASES) {
      const { status, err } = await edubba(['inspect', ...words]);
      assert.equal(status, 1, words.join(' '));
      assert.ok(err.startsWith(`edubba: ${code}: `), err);
      assert.match(err, message);
    }
    // a listed file that is missing
    await rename(sstables[0] as string, join(elsewhere, 'moved'));
    const missing = await edubba(['inspect', 'metadata', directory, '--verify']);
    assert.equal(missing.status, 1);
    assert.ok(missing.err.includes(relative(join(directory, 'files'), sstables[0] as string)), missing.err);
    // a directory of a later version
    await rm(logs[0] as string, { recursive: true });
    await mkdir(logs[0] as string);
    await writeFile(join(directory, 'EDUBBA'), 'nonsense');
    assert.match((await edubba(['inspect', 'metadata', directory])).err, /^edubba: DATA_LOSS: .*EDUBBA: corrupt/);
  });
});
