/**
 * Loads a tree of pages into a store: every page under its reversed URL, and for every link between pages of the tree
 * an anchor in the row of the page it leads to.
 *
 * Memory is bounded whatever the tree's size: one page, one batch that is gathered and one that is being written.
 */
import { parseHtml, shortened, type HtmlPage } from './html-page.ts';
import type { PageFile, PageTree } from './page-tree.ts';
import { type PageName, parseUrl, resolveLink, rowOf, urlOf } from './page-url.ts';
import type { CellWrite, RowWrite, Store } from './store.ts';

export interface LoadCounts {
  pages: number;
  bytes: number;
  /** Pages that declare their language. */
  languages: number;
  /** Links with an href; each is one of the five kinds below. */
  links: number;
  /** To another page of the tree. */
  linksToPages: number;
  linksWithinPage: number;
  /** To a page, or another file, of this site that is no page of the tree. */
  linksMissing: number;
  linksToOtherSites: number;
  /** mailto:, javascript: and what is no URL. */
  linksToNoPage: number;
  /** Cells written for linksToPages: links of one page to one other share a cell. */
  anchors: number;
  /** Files over MAX_PAGE_BYTES, not stored. */
  tooLarge: number;
}

/** How much there is to load. */
export interface LoadTotal {
  readonly pages: number;
  readonly bytes: number;
}

export interface LoadOptions {
  /** The time every cell gets: milliseconds since 1970, or 'mtime' = each file's own. */
  readonly time: number | 'mtime';
  /** Called after each page. */
  readonly onPage?: (counts: Readonly<LoadCounts>, total: LoadTotal) => void;
}

export const MAX_PAGE_BYTES = 16 * 1024 * 1024;
const BATCH_BYTES = 1024 * 1024;
const BATCH_CELLS = 2000;

export async function load(tree: PageTree, store: Store, { time, onPage }: LoadOptions): Promise<LoadCounts> {
  const total = await measure(tree);
  const counts = noCounts();
  const batch = new Batch(store);
  for await (const file of tree.pages()) {
    if (file.sizeBytes > MAX_PAGE_BYTES) {
      counts.tooLarge++;
      continue;
    }
    await loadPage(tree, batch, file, time === 'mtime' ? file.modifiedMs : time, counts);
    onPage?.(counts, total);
  }
  await batch.finish();
  return counts;
}

export function noCounts(): LoadCounts {
  return {
    pages: 0,
    bytes: 0,
    languages: 0,
    links: 0,
    linksToPages: 0,
    linksWithinPage: 0,
    linksMissing: 0,
    linksToOtherSites: 0,
    linksToNoPage: 0,
    anchors: 0,
    tooLarge: 0,
  };
}

async function measure(tree: PageTree): Promise<LoadTotal> {
  let pages = 0;
  let bytes = 0;
  for await (const { sizeBytes } of tree.pages()) {
    pages++;
    bytes += sizeBytes;
  }
  return { pages, bytes };
}

async function loadPage(
  tree: PageTree,
  batch: Batch,
  file: PageFile,
  timeMs: number,
  counts: LoadCounts,
): Promise<void> {
  const contents = await tree.read(file.path);
  const html = parseHtml(contents);
  const name = { host: tree.host, path: file.path };
  const row = rowOf(name);
  const page: CellWrite[] = [{ family: 'contents', qualifier: '', value: contents, timeMs }];
  if (html.language !== undefined) {
    page.push({ family: 'language', qualifier: '', value: Buffer.from(html.language), timeMs });
    counts.languages++;
  }
  await batch.add(row, page);
  for (const [target, texts] of await anchorsOf(tree, name, html, counts)) {
    await batch.add(target, [
      { family: 'anchor', qualifier: row, value: Buffer.from(shortened([...texts].join(' | '))), timeMs },
    ]);
    counts.anchors++;
  }
  counts.pages++;
  counts.bytes += contents.length;
}

/** The rows that the page's links lead to, each with the distinct texts of its links. */
async function anchorsOf(
  tree: PageTree,
  name: PageName,
  html: HtmlPage,
  counts: LoadCounts,
): Promise<Map<string, Set<string>>> {
  const url = urlOf(name);
  const base = (html.base !== undefined && parseUrl(html.base, url)?.href) || url;
  const anchors = new Map<string, Set<string>>();
  for (const { href, text } of html.links) {
    counts.links++;
    // a fragment alone means this page, whatever <base> says of other links
    const link = resolveLink(href, href === '' || href.startsWith('#') ? url : base);
    const page = link && (await tree.find(link));
    if (!link) counts.linksToNoPage++;
    else if (link.host !== tree.host) counts.linksToOtherSites++;
    else if (!page) counts.linksMissing++;
    else if (page.path === name.path) counts.linksWithinPage++;
    else {
      counts.linksToPages++;
      const row = rowOf(page);
      const texts = anchors.get(row) ?? new Set();
      if (text !== '') texts.add(text);
      anchors.set(row, texts);
    }
  }
  return anchors;
}

/** Gathers cells by row; a full batch is written while the next one is gathered. */
class Batch {
  readonly #store: Store;
  #rows = new Map<string, CellWrite[]>();
  #bytes = 0;
  #cells = 0;
  #written: Promise<void> = Promise.resolve();

  constructor(store: Store) {
    this.#store = store;
  }

  /** The cells given together are written together, in one mutation of the row. */
  async add(row: string, cells: readonly CellWrite[]): Promise<void> {
    const gathered = this.#rows.get(row);
    if (gathered) gathered.push(...cells);
    else this.#rows.set(row, [...cells]);
    this.#cells += cells.length;
    for (const { qualifier, value } of cells) this.#bytes += row.length + qualifier.length + value.length;
    if (this.#bytes >= BATCH_BYTES || this.#cells >= BATCH_CELLS) await this.#flush();
  }

  async finish(): Promise<void> {
    await this.#flush();
    await this.#written;
  }

  async #flush(): Promise<void> {
    await this.#written;
    const writes: RowWrite[] = [...this.#rows].map(([row, cells]) => ({ row, cells }));
    this.#rows = new Map();
    this.#bytes = 0;
    this.#cells = 0;
    if (writes.length === 0) return;
    this.#written = this.#store.write(writes);
    // a failure is told by the next flush, or by finish
    this.#written.catch(() => {});
  }
}
