/**
 * The Webtable of the paper's section 2 on real pages: `npm run example:webtable`. README.md beside this file tells
 * what to try.
 */
import { statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { printAnchors, printPage, printSite, timeText } from './answers.ts';
import { type Command, parseCommand, type Place, USAGE, UsageError } from './command.ts';
import { EmbeddedStore } from './embedded-store.ts';
import { load, type LoadCounts } from './loader.ts';
import { PageTree } from './page-tree.ts';
import { pageOfRow } from './page-url.ts';
import { megabytes, Progress } from './progress.ts';
import { ServerStore } from './server-store.ts';
import type { PageEntry, Store } from './store.ts';

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const FEW = 8;

/** Answers with the process's exit status: 1 where what was asked for is not there. */
async function run(command: Command): Promise<number> {
  const { question, trees, place } = command;
  if (question.kind === 'help') {
    print(USAGE);
    return 0;
  }
  return withStore(place, async (store) => {
    switch (question.kind) {
      case 'load':
        for (const tree of trees) await loadPages(new PageTree(tree), store, question.time ?? Date.now());
        return 0;
      case 'page':
        return (await printPage(store, question.page, print, { atMs: question.atMs })) ? 0 : 1;
      case 'anchors':
        return (await printAnchors(store, question.page, print)) > 0 ? 0 : 1;
      case 'site':
        return (await printSite(store, question.host, print)).pages > 0 ? 0 : 1;
      case 'demo':
        return demo(
          trees.map((tree) => new PageTree(tree)),
          store,
        );
    }
  });
}

async function withStore(place: Place, use: (store: Store) => Promise<number>): Promise<number> {
  const temporary = place ? undefined : await mkdtemp(join(tmpdir(), 'webtable-'));
  try {
    const store =
      place && 'address' in place
        ? await ServerStore.open(place.address, print)
        : await EmbeddedStore.open(place?.dir ?? String(temporary));
    print(`The Webtable is on: ${store.name}`);
    try {
      return await use(store);
    } finally {
      await store.close();
    }
  } finally {
    if (temporary !== undefined) await rm(temporary, { recursive: true, force: true });
  }
}

/**
 * Loads the pages twice, as of their own time and as of now, and asks the three questions, two of them about the page
 * with the most links to it.
 */
async function demo(trees: readonly PageTree[], store: Store): Promise<number> {
  const now = Date.now();
  for (const time of ['mtime', now] as const) for (const tree of trees) await loadPages(tree, store, time);
  let maxLinked: PageEntry | undefined;
  for (const { host } of trees) {
    print('');
    const site = await printSite(store, host, print, FEW);
    if ((site.maxLinked?.anchors ?? 0) > (maxLinked?.anchors ?? 0)) maxLinked = site.maxLinked;
  }
  const name = maxLinked && pageOfRow(maxLinked.row);
  if (!maxLinked || !name) {
    print('No page links to another one here, so there is no anchor to show.');
    return 1;
  }
  print('');
  await printAnchors(store, name, print, FEW);
  print('');
  await printPage(store, name, print, { maxLines: FEW });
  const oldest = maxLinked.timesMs.at(-1) ?? 0;
  for (const atMs of [oldest, oldest - 1]) {
    print('');
    await printPage(store, name, print, { atMs, maxLines: 0 });
  }
  return 0;
}

async function loadPages(tree: PageTree, store: Store, time: number | 'mtime'): Promise<void> {
  if (!statSync(tree.root, { throwIfNoEntry: false })?.isDirectory())
    throw new Error(`there is no directory "${tree.root}" to take pages from`);
  print(
    `Loading ${tree.root} as http://${tree.host}/, ${time === 'mtime' ? 'every file as of its own time' : `as of ${timeText(time)}`}`,
  );
  const progress = new Progress(process.stderr);
  const counts = await load(tree, store, { time, onPage: (done, total) => progress.update(done, total) });
  report(counts, progress.finish());
}

function report(counts: LoadCounts, seconds: number): void {
  const rate = seconds > 0 ? ` (${Math.round(counts.pages / seconds)} pages/s)` : '';
  print(
    `  ${counts.pages} pages, ${megabytes(counts.bytes)}, ${counts.anchors} anchors in ${seconds.toFixed(1)} s${rate}`,
  );
  print(`  ${counts.languages} pages declare their language`);
  const kinds = [
    `${counts.linksToPages} to other pages of the tree`,
    `${counts.linksWithinPage} within a page`,
    `${counts.linksMissing} to what is no page of the tree`,
    `${counts.linksToOtherSites} to other sites`,
    `${counts.linksToNoPage} to no web page`,
  ];
  print(`  ${counts.links} links: ${kinds.join(', ')}`);
  if (counts.tooLarge > 0) print(`  ${counts.tooLarge} files are too large to be pages and were left out`);
}

// whoever reads the answers may have read enough
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
try {
  process.exitCode = await run(parseCommand(process.argv.slice(2), process.env));
} catch (error) {
  process.stderr.write(
    `webtable: ${error instanceof Error ? error.message : String(error)}\n${error instanceof UsageError ? `\n${USAGE}` : ''}`,
  );
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
