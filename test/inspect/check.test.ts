/** `checkDirectory` over a database in which damage is planted, of every kind in every part of every kind of file. */
import assert from 'node:assert/strict';
import { copyFile, mkdir, readFile, rename, rm, truncate } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { checkDirectory, openForInspection } from '../../src/boot/index.ts';
import { type Database, open, RowMutation } from '../../src/embedded/index.ts';
import { describeSsTable } from '../../src/sstable/index.ts';
import { copyOf, fillDatabase, filesIn, flip, temporaryDirectory } from './damage.ts';

/** A damage to a copy, and the file that must be named for it, below files/ if it lies there. */
interface Planted {
  readonly name: string;
  plant(directory: string): Promise<void>;
  readonly file: RegExp;
  /** Where the finding must be; undefined = anywhere. */
  readonly offset?: number;
}

describe('checking a database', () => {
  let home: Awaited<ReturnType<typeof temporaryDirectory>>;
  let original: string;
  let database: Database;
  let paths: string[];
  let copies = 0;
  // the clock's own timers do not keep a process alive
  const alive = setInterval(() => {}, 1000);

  before(async () => {
    home = await temporaryDirectory();
    database = await fillDatabase(join(home.path, 'live'));
    // the directory as a loss of power leaves it, its log in use
    original = await copyOf(join(home.path, 'live'), join(home.path, 'original'));
    paths = await filesIn(original);
  });
  after(async () => {
    clearInterval(alive);
    await database.close();
    await home.remove();
  });

  const below = (folder: string): string[] => paths.filter((path) => path.startsWith(folder));
  const named = (path: string): RegExp => new RegExp(path.replace(/^files\//, '').replaceAll('.', '\\.'));

  async function check(plant: (directory: string) => Promise<void>) {
    const copy = await copyOf(original, join(home.path, `copy-${++copies}`));
    await plant(copy);
    const before = await filesIn(copy);
    const report = await checkDirectory(copy);
    assert.deepEqual(await filesIn(copy), before, 'a check changes nothing');
    await rm(copy, { recursive: true });
    return report;
  }

  async function findsAll(planted: readonly Planted[]): Promise<void> {
    assert.ok(planted.length > 0);
    for (const { name, plant, file, offset } of planted) {
      const { findings } = await check(plant);
      const found = findings.filter((finding) => file.test(finding.file) || file.test(finding.message));
      assert.ok(found.length > 0, `${name}: ${JSON.stringify(findings)}`);
      if (offset !== undefined)
        assert.ok(
          found.some((finding) => finding.offset === offset),
          `${name}: byte ${offset} is wanted: ${JSON.stringify(found)}`,
        );
    }
  }

  /** The user's SSTable with the most blocks that has a filter and a dictionary, and its layout. */
  async function table(group: string) {
    const source = await openForInspection(original);
    try {
      const layouts = await Promise.all(
        below('files/sstables/').map((path) => describeSsTable(source, path.slice('files/'.length))),
      );
      const fitting = layouts.filter(
        ({ properties }) => properties.group === group && properties.lineage?.tableId !== '00000000',
      );
      return fitting.sort((a, b) => b.blocks.length - a.blocks.length)[0] as (typeof layouts)[number];
    } finally {
      await source.close();
    }
  }

  test('finds nothing in a whole one, after a crash and after a close', async () => {
    const report = await check(async () => {});
    assert.deepEqual(report.findings, []);
    assert.deepEqual(report.notes, []);
    assert.deepEqual(report.orphans, []);
    const { tables, tablets, ssTables, logs, entries, records } = report.counts;
    assert.deepEqual([tables, tablets, logs, ssTables], [2, 5, 1, below('files/sstables/').length]);
    assert.ok(entries > 500 && records > 10, JSON.stringify(report.counts));
    assert.deepEqual((await checkDirectory(join(home.path, 'live'))).findings, [], 'next to its owner');
  });

  test('finds nothing in one with backups, and tables from them that were written and compacted', async () => {
    const { findings, notes, orphans } = await check(async (directory) => {
      const opened = await open(directory);
      const table = (await opened.listTables()).find((name) => name !== 'counters')!;
      const write = (name: string) => opened.table(name).apply(new RowMutation('a new row').set('text:q', 'v'));
      await opened.createBackup(table, 'b');
      await opened.copyBackup('b', 'copy');
      for (const name of ['restored', 'again']) {
        await opened.restoreTable('b', name);
        await write(name);
        await opened.flush();
        await opened.createBackup(name, `b-of-${name}`);
      }
      await opened.compact('again');
      await opened.compact(table);
      await opened.restoreTable('b-of-restored', 'third');
      await write('third');
      await opened.close();
    });
    assert.deepEqual([findings, notes], [[], []]);
    assert.deepEqual(orphans, []);
  });

  test('a damaged log that no tablet lists is a note, and no damage', async () => {
    const log = below('logs/').find((path) => path.endsWith('.segment')) as string;
    const name = log.split('/').at(-2)!;
    const other = log.replace(name, 'f'.repeat(32));
    const { findings, notes, orphans } = await check(async (directory) => {
      await mkdir(dirname(join(directory, other)), { recursive: true });
      await copyFile(join(directory, log), join(directory, other));
      await flip(join(directory, other), 70);
    });
    assert.deepEqual(findings, []);
    assert.equal(notes.length, 1);
    assert.match(notes[0]!, /f{32}.*corrupt.*no tablet needs this log/);
    assert.ok(orphans?.some((path) => path.includes('f'.repeat(32))));
  });

  test('names files and logs that nothing refers to, and what is no file of a database', async () => {
    const some = below('files/sstables/')[0] as string;
    const { findings, orphans } = await check(async (copy) => {
      await copyFile(join(copy, some), join(copy, 'files/sstables/nobodys'));
    });
    assert.deepEqual(orphans, ['sstables/nobodys']);
    assert.match(findings[0]?.message ?? '', /was written as sstables\//);
  });

  test('a flipped byte in each part of an SSTable', async () => {
    for (const group of ['default', 'small']) {
      const layout = await table(group);
      assert.ok(layout.blocks.length >= 2 && layout.bloomFilter, `group ${group}: ${layout.blocks.length} blocks`);
      const path = join('files', layout.path);
      const flipAt = (name: string, at: number, offset?: number): Planted => ({
        name: `${name} of ${layout.path}`,
        file: named(path),
        plant: (copy) => flip(join(copy, path), at),
        ...(offset !== undefined && { offset }),
      });
      const last = layout.blocks.at(-1) as { offset: number; lengthBytes: number };
      const parts = layout.sections.flatMap(({ name, offset, lengthBytes }) => [
        flipAt(`section ${name}`, offset + Math.floor(lengthBytes / 2), offset),
        flipAt(`trailer of section ${name}`, offset + lengthBytes + 2, offset),
      ]);
      const directoryAt =
        (layout.sections.at(-1)?.offset as number) + (layout.sections.at(-1)?.lengthBytes as number) + 5;
      await findsAll([
        flipAt('block', 3, 0),
        flipAt('last block', last.offset + 1, last.offset),
        flipAt('trailer of a block', last.offset + last.lengthBytes + 1, last.offset),
        ...parts,
        flipAt('directory', directoryAt + 1),
        flipAt('footer', layout.sizeBytes - 40),
        flipAt('end', layout.sizeBytes - 1),
      ]);
    }
    assert.ok((await table('small')).compressionSharedBytes > 0, 'a dictionary was among the parts');
  });

  test('every damaged block is reported, with the rows that it holds', async () => {
    const layout = await table('default');
    const { findings } = await check(async (copy) => {
      for (const number of [0, 2])
        await flip(join(copy, 'files', layout.path), (layout.blocks[number]?.offset as number) + 1);
    });
    assert.deepEqual(
      findings.map(({ file, offset }) => [file, offset]),
      [0, 2].map((number) => [layout.path, layout.blocks[number]?.offset]),
    );
    assert.match(findings[0]?.message ?? '', /it holds rows "page-/);
  });

  test('a flipped byte in each part of a log; bytes after its end are allocated ahead, which no check can see', async () => {
    const segment = below('logs/').find((path) => path.endsWith('.segment')) as string;
    const bytes = await readFile(join(original, segment));
    const end = bytes.lastIndexOf('DONE') + 4;
    const flipAt = (name: string, at: number, offset?: number): Planted => ({
      name,
      file: named(segment),
      plant: (copy) => flip(join(copy, segment), at),
      ...(offset !== undefined && { offset }),
    });
    const middle = bytes.indexOf('FRAM', Math.floor(end / 2));
    await findsAll([
      flipAt('magic', 0, 0),
      flipAt('header', 20),
      flipAt('first frame', 70),
      flipAt('frame header', middle + 5, middle),
      flipAt('payload', middle + 40, middle),
      flipAt('after the end', end + 8),
    ]);
    // the end mark says that all sectors of a frame were written, which the payload's checksum says too; the other byte
    // is room made ahead
    for (const at of [end - 1, bytes.length - 1])
      assert.deepEqual((await check((copy) => flip(join(copy, segment), at))).findings, [], `byte ${at} holds nothing`);
  });

  test('a flipped byte in every small file of the lock service, and in the format file', async () => {
    const small = below('files/lock-service/');
    assert.ok(small.length >= 5, 'root, two schemas, numbers, the next id');
    const planted = await Promise.all(
      small.map(async (path): Promise<Planted[]> => {
        const { length } = await readFile(join(original, path));
        return [0, 9, 25, 37, Math.floor((36 + length) / 2), length - 1].map((at) => ({
          name: `${path} at ${at}`,
          file: named(path),
          plant: (copy) => flip(join(copy, path), at),
        }));
      }),
    );
    await findsAll([
      ...planted.flat(),
      { name: 'EDUBBA', file: /EDUBBA/, plant: (copy) => flip(join(copy, 'EDUBBA'), 40) },
    ]);
  });

  test('a file that is cut short, or gone', async () => {
    const planted: Planted[] = [];
    for (const path of paths.filter((each) => each !== 'LOCK')) {
      const { length } = await readFile(join(original, path));
      const cutTo = path.endsWith('.segment') ? [0, 50, 3000] : [0, Math.floor(length / 2), length - 1];
      for (const left of cutTo)
        planted.push({
          name: `${path} cut to ${left}`,
          file: named(path),
          plant: (copy) => truncate(join(copy, path), left),
        });
    }
    await findsAll(planted);
    const gone = (path: string, file: RegExp): Planted => ({
      name: `${path} gone`,
      file,
      plant: (copy) => rm(join(copy, path)),
    });
    await findsAll(below('files/sstables/').map((path) => gone(path, named(path))));
    await findsAll(below('logs/').map((path) => gone(path, /logs\//)));
    const contents = await Promise.all(
      below('files/lock-service/').map(
        async (path) => [path, (await readFile(join(original, path))).toString('latin1')] as const,
      ),
    );
    const having = (text: string): string => contents.find(([, bytes]) => bytes.includes(text))?.[0] as string;
    await findsAll([
      gone(having('"end"'), /^root$/),
      gone(having('"families"'), /METADATA/),
      gone(below('files/lock-service/numbers/')[0] as string, /lock-service/),
    ]);
  });

  test('files in one another’s place', async () => {
    const swap = (a: string, b: string): Planted => ({
      name: `${a} and ${b}`,
      file: new RegExp(`${named(a).source}|${named(b).source}`),
      plant: async (copy) => {
        await rename(join(copy, a), join(copy, 'swap'));
        await rename(join(copy, b), join(copy, a));
        await rename(join(copy, 'swap'), join(copy, b));
      },
    });
    const tables = below('files/sstables/');
    const small = below('files/lock-service/files/');
    await findsAll([
      ...tables.slice(1).map((path, i) => swap(tables[i] as string, path)),
      ...small.slice(1).map((path, i) => swap(small[i] as string, path)),
    ]);
  });
});
