import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { printAnchors, printPage, printSite } from './answers.ts';
import { packagePages } from './command.ts';
import { EmbeddedStore } from './embedded-store.ts';
import { load } from './loader.ts';
import { PageTree } from './page-tree.ts';
import { hasGoogleClient, repositoryRoot, ServerStore } from './server-store.ts';
import type { RowWrite, Store } from './store.ts';

const folders: string[] = [];
after(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))));

async function treeOf(files: Readonly<Record<string, string>>): Promise<PageTree> {
  const root = await mkdtemp(join(tmpdir(), 'webtable-test-'));
  folders.push(root);
  for (const [path, text] of Object.entries(files)) await write(root, path, text);
  return new PageTree({ root, host: 'www.example.com' });
}

async function write(root: string, path: string, text: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

async function withStore(use: (store: Store) => Promise<void>): Promise<void> {
  const store = await EmbeddedStore.open(':memory:');
  try {
    await use(store);
  } finally {
    await store.close();
  }
}

const SITE = {
  'index.html':
    '<html lang="en"><title>Start</title><a href="docs/">Manual</a> <a href="docs/a.html#top">A</a> <a href="docs/a.html"><b>the</b> A</a>',
  'docs/index.html':
    '<a href="a.html">A</a><a href="b%20c.htm?x=1">B C</a><a href="#here">here</a><a href="gone.html">gone</a>',
  'docs/a.html':
    '<base href="/"><a href="index.html">home</a><a href="#part">part</a><a href="http://other.org/">other</a><a href="mailto:a@b.c">mail</a>',
  'docs/b c.htm': '<html lang="fr">Rien',
  'docs/style.css': 'a { color: red }',
};
const row = (path: string) => `com.example.www/${path}`;

describe('loading a tree', () => {
  test('every page under its reversed URL, every link between pages as an anchor', async () => {
    const tree = await treeOf(SITE);
    await withStore(async (store) => {
      const counts = await load(tree, store, { time: 1000 });
      assert.deepEqual(counts, {
        pages: 4,
        bytes: Object.entries(SITE).reduce(
          (sum, [path, text]) => sum + (path.endsWith('css') ? 0 : Buffer.byteLength(text)),
          0,
        ),
        languages: 2,
        links: 11,
        linksToPages: 6,
        linksWithinPage: 2,
        linksMissing: 1,
        linksToOtherSites: 1,
        linksToNoPage: 1,
        anchors: 5,
        tooLarge: 0,
      });
      assert.deepEqual(await collect(store.entries({ prefix: 'com.example.www/' })), [
        { row: row('docs/a.html'), language: undefined, timesMs: [1000], anchors: 2 },
        { row: row('docs/b c.htm'), language: 'fr', timesMs: [1000], anchors: 1 },
        { row: row('docs/index.html'), language: undefined, timesMs: [1000], anchors: 1 },
        { row: row('index.html'), language: 'en', timesMs: [1000], anchors: 1 },
      ]);
      assert.deepEqual(await collect(store.anchors(row('docs/a.html'))), [
        { from: row('docs/index.html'), text: 'A', timeMs: 1000 },
        { from: row('index.html'), text: 'A | the A', timeMs: 1000 },
      ]);
      assert.deepEqual(await collect(store.anchors(row('index.html'))), [
        { from: row('docs/a.html'), text: 'home', timeMs: 1000 },
      ]);
      const page = await store.page(row('docs/b c.htm'));
      assert.equal(Buffer.from(page?.contents ?? []).toString(), SITE['docs/b c.htm']);
      assert.equal(page?.language, 'fr');
    });
  });

  test('again: another version; as of the earlier time the earlier page; three versions at most', async () => {
    const tree = await treeOf(SITE);
    await withStore(async (store) => {
      const seen = async (atMs?: number) => {
        const page = await store.page(row('index.html'), atMs);
        return page && [Buffer.from(page.contents).toString(), page.language, page.timeMs];
      };
      await load(tree, store, { time: 1000 });
      await write(tree.root, 'index.html', 'second, in no language');
      await load(tree, store, { time: 2000 });
      assert.deepEqual(await seen(), ['second, in no language', undefined, 2000]);
      assert.deepEqual(await seen(2000), ['second, in no language', undefined, 2000]);
      assert.deepEqual(await seen(1999), [SITE['index.html'], 'en', 1000]);
      assert.equal(await seen(999), undefined);
      for (const time of [3000, 4000]) {
        await write(tree.root, 'index.html', `as of ${time}`);
        await load(tree, store, { time });
      }
      assert.equal(await seen(1999), undefined);
      const entry = { row: row('index.html'), language: undefined, timesMs: [4000, 3000, 2000], anchors: 1 };
      assert.deepEqual(await collect(store.entries({ row: row('index.html') })), [entry]);
    });
  });

  test("as of each file's own time", async () => {
    const tree = await treeOf({ 'a.html': '<a href="b.html">b</a>', 'b.html': 'b' });
    await utimes(join(tree.root, 'a.html'), 1000, 1234.5);
    await utimes(join(tree.root, 'b.html'), 1000, 2000);
    await withStore(async (store) => {
      await load(tree, store, { time: 'mtime' });
      assert.equal((await store.page(row('a.html')))?.timeMs, 1_234_500);
      assert.equal((await store.page(row('b.html')))?.timeMs, 2_000_000);
      assert.deepEqual(await collect(store.anchors(row('b.html'))), [
        { from: row('a.html'), text: 'b', timeMs: 1_234_500 },
      ]);
    });
  });

  test('a link cannot leave the tree, and symbolic links are not followed', async () => {
    const links = '<a href="..%2f..%2fout.html">1</a><a href="%2e%2e/%2e%2e/in/b.html">2</a><a href="c.html">3</a>';
    const tree = await treeOf({ 'in/a.html': links, 'in/b.html': 'b', 'out.html': 'out' });
    const inner = new PageTree({ root: join(tree.root, 'in'), host: tree.host });
    await symlink(join(tree.root, 'out.html'), join(inner.root, 'c.html'));
    assert.deepEqual((await collect(inner.pages())).map(({ path }) => path).sort(), ['a.html', 'b.html']);
    await withStore(async (store) => {
      const counts = await load(inner, store, { time: 1 });
      assert.deepEqual([counts.linksToPages, counts.linksMissing], [0, 3]);
    });
  });

  test('progress is told after each page, and a failed write is thrown', async () => {
    const tree = await treeOf(SITE);
    const seen: string[] = [];
    const written: RowWrite[] = [];
    const store = { write: async (writes: readonly RowWrite[]) => void written.push(...writes) } as unknown as Store;
    await load(tree, store, { time: 1, onPage: ({ pages }, total) => seen.push(`${pages} of ${total.pages}`) });
    assert.deepEqual(seen, ['1 of 4', '2 of 4', '3 of 4', '4 of 4']);
    assert.equal(new Set(written.map((write) => write.row)).size, written.length, 'one mutation a row in a batch');
    const broken = { write: () => Promise.reject(new Error('disk is full')) } as unknown as Store;
    await assert.rejects(load(tree, broken, { time: 1 }), /disk is full/);
  });

  test('more anchors than one read gives', async () => {
    const referring = Object.fromEntries(
      Array.from({ length: 1003 }, (_, i) => [`r${i}.html`, `<a href="hub.html">${i}</a>`]),
    );
    const tree = await treeOf({ 'hub.html': 'hub', ...referring });
    await withStore(async (store) => {
      const counts = await load(tree, store, { time: 1 });
      assert.equal(counts.anchors, 1003);
      const anchors = await collect(store.anchors(row('hub.html')));
      const expected = Object.keys(referring).map((path) => `${row(path)} ${path.slice(1, -5)}`);
      assert.deepEqual(
        anchors.map(({ from, text }) => `${from} ${text}`),
        expected.sort(),
      );
      assert.deepEqual(
        (await collect(store.entries({ row: row('hub.html') }))).map(({ anchors: count }) => count),
        [1000],
      );
    });
  });
});

test('the answers in words', async () => {
  const tree = await treeOf(SITE);
  await withStore(async (store) => {
    await load(tree, store, { time: Date.UTC(2026, 10, 21) });
    const lines: string[] = [];
    const print = (line: string) => lines.push(line);
    const name = { host: tree.host, path: 'index.html' };
    assert.equal(await printPage(store, name, print, { maxLines: 1 }), true);
    assert.ok(
      lines.includes('  stored    2026-11-21T00:00:00.000Z') &&
        lines.includes('  language  en') &&
        lines.includes('  title     Start'),
    );
    assert.ok(lines.some((line) => line.startsWith('  | <html lang="en">')));
    assert.equal(await printPage(store, name, print, { atMs: 0 }), false);
    assert.equal(lines.at(-1), 'http://www.example.com/index.html as of 1970-01-01T00:00:00.000Z: no such page');
    assert.equal(await printAnchors(store, { host: tree.host, path: 'docs/a.html' }, print, 1), 2);
    assert.deepEqual(lines.slice(-2), ['  … and 1 more', '  2 pages link to it']);
    const { pages, maxLinked } = await printSite(store, tree.host, print);
    assert.deepEqual([pages, maxLinked?.row], [4, row('docs/a.html')]);
    assert.ok(lines.includes('  http://www.example.com/docs/b%20c.htm  fr, 1 version, linked from 1 page'));
    assert.equal((await printSite(store, 'example.com', print)).pages, 0, 'another host, though its rows are near');
  });
});

test('real pages: the packages of the example, through a directory', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'webtable-test-'));
  folders.push(directory);
  let store: Store = await EmbeddedStore.open(directory);
  try {
    for (const [which, options] of packagePages().entries()) {
      const tree = new PageTree(options);
      const files = (options.folders ?? ['.']).flatMap((folder) => htmlFiles(join(options.root, folder)));
      const counts = await load(tree, store, { time: 1000 });
      assert.equal(counts.pages, files.length);
      assert.equal(
        counts.bytes,
        files.reduce((sum, path) => sum + statSync(path).size, 0),
      );
      assert.equal(
        counts.links,
        counts.linksToPages +
          counts.linksWithinPage +
          counts.linksMissing +
          counts.linksToOtherSites +
          counts.linksToNoPage,
      );
      assert.ok(counts.anchors > 0 && counts.languages > 0);
      if (which === 0) assert.ok(counts.pages >= 1000, `${counts.pages} pages`);
    }
    await store.close();
    store = await EmbeddedStore.open(directory);
    const dojo = await collect(store.entries({ prefix: 'org.dojotoolkit.www/' }));
    assert.ok(dojo.length >= 1000 && dojo.every(({ timesMs }) => timesMs.length === 1));
    assert.deepEqual(
      dojo.map((entry) => entry.row),
      dojo.map((entry) => entry.row).sort(),
    );
    const manual = 'org.cannonjs.www/docs/classes';
    const anchors = await collect(store.anchors(`${manual}/AABB.html`));
    assert.ok(anchors.some(({ from, text }) => from === `${manual}/Body.html` && text === 'AABB'));
    const page = await store.page(`${manual}/AABB.html`);
    assert.equal(page?.language, 'en');
    assert.equal(page?.contents.length, statSync(join(String(packagePages()[1]?.root), 'docs/classes/AABB.html')).size);
  } finally {
    await store.close();
  }
});

test("a server answers through Google's client as the library does", async (t) => {
  if (!(await hasGoogleClient())) return t.skip("Google's Node client is not in the cache; npm run interop fetches it");
  const referring = Object.fromEntries(
    Array.from({ length: 1003 }, (_, i) => [`r${i}.html`, `<a href="hub.html">${i}</a>`]),
  );
  const tree = await treeOf({ ...SITE, 'hub.html': 'hub', ...referring });
  const { server, address } = await startServer();
  try {
    const said: string[] = [];
    const remote = await ServerStore.open(address, (words) => said.push(words));
    try {
      await withStore(async (local) => {
        for (const store of [local, remote]) {
          await write(tree.root, 'index.html', SITE['index.html']);
          await load(tree, store, { time: 1000 });
          await write(tree.root, 'index.html', Buffer.from([0, 255, 254, 10]).toString('latin1'));
          await load(tree, store, { time: 2000 });
        }
        const everything = async (store: Store) => ({
          entries: await collect(store.entries({ prefix: 'com.example.www/' })),
          one: await collect(store.entries({ row: row('index.html') })),
          anchors: await collect(store.anchors(row('hub.html'))),
          none: await collect(store.anchors(row('no such page'))),
          pages: await Promise.all(
            [undefined, 999, 1000, 1999, 2000].map(async (atMs) => {
              const page = await store.page(row('index.html'), atMs);
              return page && { ...page, contents: Buffer.from(page.contents).toString('hex') };
            }),
          ),
        });
        const answers = await everything(remote);
        assert.deepEqual(answers, await everything(local));
        assert.equal(answers.entries.length, 1008);
        assert.equal(answers.anchors.length, 1003);
        assert.deepEqual(
          answers.pages.map((page) => page?.timeMs),
          [2000, undefined, 1000, 1000, 2000],
        );
        assert.deepEqual(said, []);
      });
    } finally {
      await remote.close();
    }
  } finally {
    server.kill();
    await once(server, 'exit');
  }
});

test('a server that is not there is told of at once', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  await assert.rejects(
    ServerStore.open(`127.0.0.1:${port}`, () => {}),
    new RegExp(`no server at 127.0.0.1:${port} .*npm start`),
  );
  await assert.rejects(
    ServerStore.open('somewhere', () => {}),
    /"somewhere" is not an address/,
  );
});

async function startServer(): Promise<{ server: ChildProcess; address: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'webtable-test-'));
  folders.push(directory);
  const command = [join(repositoryRoot(), 'bin', 'edubba'), 'serve', '--dir', directory, '--address', '127.0.0.1:0'];
  const server = spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  for await (const text of server.stdout.setEncoding('utf8')) {
    output += text;
    const address = /listening on (\S+:\d+)/.exec(output)?.[1];
    if (address !== undefined) return { server, address };
  }
  throw new Error(`the server did not start: ${output}`);
}

function htmlFiles(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && /\.x?html?$/i.test(entry.name))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}
