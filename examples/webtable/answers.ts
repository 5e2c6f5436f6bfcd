/**
 * The three questions to a Webtable, answered in words: the page as of a time, all anchors to a page, all pages of a
 * site.
 */
import { parseHtml } from './html-page.ts';
import { pageOfRow, type PageName, reversedHost, rowOf, urlOf } from './page-url.ts';
import { MAX_COUNTED, type PageEntry, type Store } from './store.ts';

/** Prints one line. */
export type Print = (line: string) => void;

export interface PageQuestion {
  readonly atMs?: number | undefined;
  /** Most lines printed of the contents. Default: all. */
  readonly maxLines?: number;
}

/** False where the page is not there. */
export async function printPage(
  store: Store,
  name: PageName,
  print: Print,
  { atMs, maxLines = Infinity }: PageQuestion = {},
): Promise<boolean> {
  const row = rowOf(name);
  const page = await store.page(row, atMs);
  const when = atMs === undefined ? '' : ` as of ${timeText(atMs)}`;
  if (!page) {
    print(`${urlOf(name)}${when}: no such page`);
    return false;
  }
  const { title } = parseHtml(page.contents);
  print(`${urlOf(name)}${when}`);
  print(`  row       ${row}`);
  print(`  stored    ${timeText(page.timeMs)}`);
  for await (const { timesMs } of store.entries({ row })) print(`  versions  ${timesMs.map(timeText).join(', ')}`);
  print(`  language  ${page.language ?? 'not declared'}`);
  print(`  title     ${title === '' ? 'none' : title}`);
  print(`  contents  ${page.contents.length} bytes`);
  if (maxLines === 0) return true;
  const lines = Buffer.from(page.contents).toString('utf8').split('\n');
  for (const line of lines.slice(0, maxLines)) print(`  | ${line.trimEnd()}`);
  if (lines.length > maxLines) print(`  | … (${lines.length - maxLines} more lines)`);
  return true;
}

/** Prints every anchor, or the first `most`; gives how many there are. */
export async function printAnchors(store: Store, name: PageName, print: Print, most = Infinity): Promise<number> {
  print(`Links to ${urlOf(name)}`);
  let count = 0;
  for await (const { from, text, timeMs } of store.anchors(rowOf(name))) {
    count++;
    if (count <= most) print(`  anchor:${from}  ${JSON.stringify(text)}  ${timeText(timeMs)}`);
  }
  if (count > most) print(`  … and ${count - most} more`);
  print(`  ${count} ${count === 1 ? 'page links' : 'pages link'} to it`);
  return count;
}

export interface SiteAnswer {
  readonly pages: number;
  /** The page with the most anchors; undefined where no page has any. */
  readonly maxLinked: PageEntry | undefined;
}

/** Prints every page of the host, or the first `most`. */
export async function printSite(store: Store, host: string, print: Print, most = Infinity): Promise<SiteAnswer> {
  const prefix = `${reversedHost(host)}/`;
  print(`Pages of ${host}: the rows that start with ${prefix}`);
  let pages = 0;
  let maxLinked: PageEntry | undefined;
  for await (const entry of store.entries({ prefix })) {
    const name = pageOfRow(entry.row);
    if (!name || entry.timesMs.length === 0) continue;
    pages++;
    if (entry.anchors > (maxLinked?.anchors ?? 0)) maxLinked = entry;
    if (pages <= most) print(`  ${urlOf(name)}  ${describe(entry)}`);
  }
  if (pages > most) print(`  … and ${pages - most} more`);
  print(`  ${pages} ${pages === 1 ? 'page' : 'pages'}`);
  return { pages, maxLinked };
}

function describe({ language, timesMs, anchors }: PageEntry): string {
  const from = anchors >= MAX_COUNTED ? `${MAX_COUNTED} or more pages` : anchors === 1 ? '1 page' : `${anchors} pages`;
  const versions = timesMs.length === 1 ? '1 version' : `${timesMs.length} versions`;
  return [language ?? 'language not declared', versions, ...(anchors > 0 ? [`linked from ${from}`] : [])].join(', ');
}

export function timeText(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
