/** A database in a directory with every kind of file in it, and copies of it to be damaged. */
import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Database, open, RowMutation } from '../../src/embedded/index.ts';

export async function temporaryDirectory(): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'edubba-inspect-'));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/** Rows of the table `pages`, some blocks long. */
export const PAGES = 120;

export function pageRow(i: number): string {
  return `page-${String(i).padStart(4, '0')}`;
}

/**
 * Tables in two locality groups each way of compressing; some rows in files, the last in the log alone. Left open:
 * `close` it.
 */
export async function fillDatabase(directory: string): Promise<Database> {
  const database = await open(directory, { blockSizeBytes: 1024 });
  const pages = await database.createTable('pages', {
    families: { text: {}, meta: {} },
    splits: [pageRow(PAGES / 2)],
    groups: {
      small: { families: ['meta'], compression: { kind: 'zstd-dict' }, bloomFilter: 'row-column' },
      default: { bloomFilter: 'row' },
    },
  });
  await database.createTable('counters', { families: { n: { aggregate: 'sum' } } });
  const write = (life: number) =>
    pages.applyAll(
      Array.from({ length: PAGES }, (_, i) =>
        new RowMutation(pageRow(i))
          .set('text:body', `the text of page ${i} in life ${life} `.repeat(8), life * 1000)
          .set('meta:length', `${i * life}`.padStart(60, '.'), 1000),
      ),
    );
  await write(1);
  await database.flush();
  await write(2);
  await pages.deleteRows({ start: pageRow(10), end: pageRow(12) });
  await database.flush();
  await pages.apply(new RowMutation('late').set('text:body', 'in the log alone', 1000));
  for (let i = 0; i < 5; i++) await database.table('counters').apply(new RowMutation('visits').add('n:all', i, 0));
  return database;
}

/** Paths below the directory. */
export async function filesIn(directory: string): Promise<string[]> {
  const names: string[] = [];
  for (const name of await readdir(directory, { recursive: true }))
    if ((await stat(join(directory, name))).isFile()) names.push(name);
  return names.sort();
}

export async function copyOf(directory: string, to: string): Promise<string> {
  await cp(directory, to, { recursive: true });
  return to;
}

export async function flip(path: string, at: number, mask = 0x20): Promise<void> {
  const bytes = await readFile(path);
  bytes[at] = (bytes[at] as number) ^ mask;
  await writeFile(path, bytes);
}
