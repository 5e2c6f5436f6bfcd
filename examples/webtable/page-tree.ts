/**
 * A directory tree of HTML files as a site: every file whose name says HTML is a page, its path in the tree the page's
 * path. Symbolic links are not followed. Nothing is held of the tree but one directory a level and a bounded cache of
 * names that links asked for.
 */
import { lstat, opendir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PageName } from './page-url.ts';

export interface PageFile {
  /** In the tree, parts separated by slashes. */
  readonly path: string;
  readonly sizeBytes: number;
  /** When the file was last changed. */
  readonly modifiedMs: number;
}

export interface PageTreeOptions {
  readonly root: string;
  /** The host that the pages are stored under. */
  readonly host: string;
  /** Only these folders of the root. Default: all. */
  readonly folders?: readonly string[];
}

const HTML_FILE = /\.x?html?$/i;
const INDEX_FILES = ['index.html', 'index.htm'];
const MAX_CACHED = 10_000;

export class PageTree {
  readonly host: string;
  readonly root: string;
  readonly #folders: readonly string[] | undefined;
  readonly #cache = new Map<string, boolean>();

  constructor({ root, host, folders }: PageTreeOptions) {
    this.root = root;
    this.host = host.toLowerCase();
    this.#folders = folders;
  }

  /** All pages, in no order that matters. */
  async *pages(): AsyncGenerator<PageFile, void, void> {
    if (!this.#folders) return yield* this.#walk('');
    for (const folder of this.#folders) yield* this.#walk(`${folder}/`);
  }

  async *#walk(prefix: string): AsyncGenerator<PageFile, void, void> {
    for await (const entry of await opendir(join(this.root, prefix))) {
      const path = prefix + entry.name;
      if (entry.isDirectory()) yield* this.#walk(`${path}/`);
      else if (entry.isFile() && HTML_FILE.test(entry.name)) {
        const { size, mtimeMs } = await lstat(join(this.root, path));
        yield { path, sizeBytes: size, modifiedMs: Math.floor(mtimeMs) };
      }
    }
  }

  read(path: string): Promise<Buffer> {
    return readFile(join(this.root, path));
  }

  /**
   * The page of the tree that a URL leads to: the file itself, or the index of a directory. Undefined where there is
   * none.
   */
  async find({ host, path }: PageName): Promise<PageName | undefined> {
    if (host !== this.host) return undefined;
    const folder = path === '' || path.endsWith('/') ? path : `${path}/`;
    const candidates = HTML_FILE.test(path) ? [path] : INDEX_FILES.map((name) => folder + name);
    for (const candidate of candidates) if (await this.#has(candidate)) return { host, path: candidate };
    return undefined;
  }

  async #has(path: string): Promise<boolean> {
    const known = this.#cache.get(path);
    if (known !== undefined) return known;
    const found = this.#isInside(path) && (await isFile(join(this.root, path)));
    if (this.#cache.size >= MAX_CACHED) this.#cache.delete(this.#cache.keys().next().value ?? '');
    this.#cache.set(path, found);
    return found;
  }

  #isInside(path: string): boolean {
    // a URL has no '..' left in it, but may have had '%2e%2e' or a backslash
    const parts = path.split('/');
    if (parts.some((part) => part === '' || part === '.' || part === '..' || /[\\\0]/.test(part))) return false;
    return this.#folders === undefined || this.#folders.some((folder) => path.startsWith(`${folder}/`));
  }
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isFile();
  } catch {
    return false;
  }
}
