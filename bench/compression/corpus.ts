/**
 * The pages that compression is judged on: the HTML of Debian's documentation packages, each package a site. They are
 * fetched by the distribution's own package manager (no root needed), and kept unpacked in a cache folder. Pages are in
 * the order of reversed host and path, as a table of web pages has them, and packed into blocks as an SSTable packs
 * them: a page is never split, a page above the target stands alone.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export interface Page {
  readonly key: string;
  readonly bytes: Buffer;
}

/** Package, and the host whose documentation it holds, reversed. */
export const SITES: readonly (readonly [name: string, host: string])[] = [
  ['openjdk-17-doc', 'com.oracle.docs'],
  ['cmake-doc', 'org.cmake'],
  ['postgresql-doc-15', 'org.postgresql.www'],
  ['python-django-doc', 'com.djangoproject.docs'],
  ['python3.11-doc', 'org.python.docs'],
  ['qtbase5-doc-html', 'io.qt.doc'],
  ['sqlite3-doc', 'org.sqlite'],
  ['libstdc++-12-doc', 'org.gnu.gcc'],
];

/**
 * Sites whose documentation is there in three versions, newest first, as a table keeps them; `#` stands for the version
 * in package and path.
 */
const VERSIONED: readonly (readonly [name: string, host: string])[] = [
  ['llvm-#-doc', 'org.llvm'],
  ['clang-#-doc', 'org.llvm.clang'],
];
const VERSIONS = ['16', '15', '14'];

/** Bytes taken of each site. */
const SITE_BYTES = 16 * 1024 * 1024;

const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'edubba-bench');

function must(what: string, command: string, args: readonly string[], cwd: string): void {
  const { status, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (status !== 0)
    throw new Error(
      `missing: ${what} (${command} ${args.join(' ')}: ${(error?.message ?? stderr).trim().slice(-400)})`,
    );
}

/** Makes `folder` by `fill`, all of it or nothing. */
function makeFolder(folder: string, fill: (scratch: string) => void): string {
  if (existsSync(folder)) return folder;
  mkdirSync(CACHE, { recursive: true });
  const scratch = mkdtempSync(join(CACHE, 'new-'));
  try {
    fill(scratch);
    renameSync(scratch, folder);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return folder;
}

function packageFolder(name: string): string {
  return makeFolder(join(CACHE, name), (scratch) => {
    console.error(`fetching ${name}`);
    must(`Debian's package ${name}`, 'apt-get', ['download', name], scratch);
    const [file] = readdirSync(scratch);
    if (file === undefined) throw new Error(`missing: Debian's package ${name}`);
    must('dpkg-deb', 'dpkg-deb', ['-x', file, '.'], scratch);
    rmSync(join(scratch, file));
  });
}

/** All HTML files under `folder`, by their path in it. */
function htmlUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.endsWith('.html') && statSync(join(folder, path)).isFile(),
  );
}

/**
 * A site's pages in key order: the whole site, or the stretch in its middle. Throws with words where it cannot be
 * fetched.
 */
export function sitePages([name, host]: readonly [string, string]): Page[] {
  const folder = packageFolder(name);
  const files = htmlUnder(folder)
    .sort()
    .map((path) => ({ path, size: statSync(join(folder, path)).size }));
  let surplus = (files.reduce((sum, { size }) => sum + size, 0) - SITE_BYTES) / 2;
  const pages: Page[] = [];
  let total = 0;
  for (const { path, size } of files) {
    if (surplus > 0) surplus -= size;
    else if (total < SITE_BYTES) {
      pages.push({ key: `${host}/${path}`, bytes: readFileSync(join(folder, path)) });
      total += size;
    }
  }
  return pages;
}

/** The pages that are there in all three versions, versions of a page side by side, newest first. */
export function versionedPages(): Page[] {
  const pages: Page[] = [];
  for (const [name, host] of VERSIONED) {
    const folders = VERSIONS.map((version) => packageFolder(name.replace('#', version)));
    const atVersion = (path: string, version: string): string => path.replaceAll(`-${VERSIONS[0]}`, `-${version}`);
    for (const path of htmlUnder(folders[0] as string).sort()) {
      const files = VERSIONS.map((version, i) => join(folders[i] as string, atVersion(path, version)));
      if (files.every((file) => existsSync(file)))
        for (const file of files) pages.push({ key: `${host}/${path}`, bytes: readFileSync(file) });
    }
  }
  return pages;
}

/** Pages, in order, as blocks: each ends before it would grow beyond the target. */
export function packBlocks(pages: readonly Page[], targetBytes: number): Buffer[] {
  const blocks: Buffer[] = [];
  let open: Buffer[] = [];
  let openBytes = 0;
  const end = (): void => {
    if (open.length > 0) blocks.push(Buffer.concat(open));
    open = [];
    openBytes = 0;
  };
  for (const { key, bytes } of pages) {
    if (openBytes + bytes.length > targetBytes) end();
    open.push(Buffer.from(key), bytes);
    openBytes += bytes.length;
  }
  end();
  return blocks;
}
