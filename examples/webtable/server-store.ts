/**
 * The Webtable on a server, through Google's Node client @google-cloud/bigtable, unchanged. The client is no dependency
 * of this package: it is taken from the folder in which the interop scripts keep it, and installed there by npm if it
 * is not.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  type Anchor,
  ANCHORS_A_READ,
  MAX_COUNTED,
  type PageEntry,
  type RowWrite,
  type Store,
  type StoredPage,
  TABLE,
  VERSIONS,
} from './store.ts';

/** What is used here of Google's client; with `decode: false` values are bytes and times are text. */
interface GoogleCell {
  readonly value: Buffer;
  readonly timestamp: string;
}
interface GoogleRow {
  readonly id: string | Buffer;
  readonly data: Readonly<Record<string, Readonly<Record<string, readonly GoogleCell[]>>>>;
}
interface GoogleTable {
  exists(): Promise<[boolean]>;
  create(options: { families: readonly { name: string; rule: { versions: number } }[] }): Promise<unknown>;
  insert(
    entries: readonly { key: string; data: Record<string, Record<string, { value: Buffer; timestamp: number }>> }[],
  ): Promise<unknown>;
  getRows(options: { keys: readonly string[]; filter: unknown; decode: false }): Promise<[GoogleRow[]]>;
  createReadStream(options: {
    prefix?: string;
    keys?: readonly string[];
    filter: unknown;
    decode: false;
  }): AsyncIterable<GoogleRow>;
}
interface GoogleModule {
  Bigtable: new (options: { projectId: string }) => GoogleClient;
}
interface GoogleClient {
  instance(id: string): { table(id: string): GoogleTable };
  close(): Promise<unknown>;
}

const REACH_MS = 5000;

const ENTRY = {
  interleave: [
    [{ family: 'contents' }, { value: { strip: true } }],
    [{ family: 'language' }, { column: { cellLimit: 1 } }],
    [{ family: 'anchor' }, { row: { cellLimit: MAX_COUNTED } }, { value: { strip: true } }],
  ],
};

export class ServerStore implements Store {
  readonly name: string;
  readonly #client: GoogleClient;
  readonly #table: GoogleTable;

  private constructor(name: string, client: GoogleClient) {
    this.name = name;
    this.#client = client;
    this.#table = client.instance(TABLE).table(TABLE);
  }

  /** Connects to a server at HOST:PORT and makes the table if it is not there. `say` hears of what takes its time. */
  static async open(address: string, say: (words: string) => void): Promise<ServerStore> {
    const { client, version } = await googleClient(address, say);
    const store = new ServerStore(`Google's Node client ${version}, ${address}`, client);
    const [exists] = await store.#table.exists();
    const families = Object.entries(VERSIONS).map(([name, versions]) => ({ name, rule: { versions } }));
    if (!exists) await store.#table.create({ families });
    return store;
  }

  async write(writes: readonly RowWrite[]): Promise<void> {
    const entries = writes.map(({ row, cells }) => {
      const data: Record<string, Record<string, { value: Buffer; timestamp: number }>> = {};
      for (const { family, qualifier, value, timeMs } of cells) {
        data[family] ??= {};
        data[family][qualifier] = { value: Buffer.from(value), timestamp: timeMs * 1000 };
      }
      return { key: row, data };
    });
    await this.#table.insert(entries);
  }

  async page(row: string, atMs?: number): Promise<StoredPage | undefined> {
    const filter: unknown[] = [{ family: /contents|language/ }];
    if (atMs !== undefined) filter.push({ time: { end: new Date(atMs + 1) } });
    filter.push({ column: { cellLimit: 1 } });
    const found = await this.#row(row, filter);
    const contents = found?.data['contents']?.['']?.[0];
    if (!contents) return undefined;
    return { contents: contents.value, timeMs: milliseconds(contents), language: languageOf(found) };
  }

  async *anchors(row: string): AsyncGenerator<Anchor, void, void> {
    let after: string | undefined = '';
    while (after !== undefined) {
      const column =
        after === ''
          ? { family: 'anchor' }
          : { column: { family: 'anchor', start: { value: after, inclusive: false } } };
      const piece: GoogleRow | undefined = await this.#row(row, [
        column,
        { column: { cellLimit: 1 } },
        { row: { cellLimit: ANCHORS_A_READ } },
      ]);
      const columns = Object.entries(piece?.data['anchor'] ?? {});
      for (const [from, [cell]] of columns)
        if (cell) yield { from, text: cell.value.toString('utf8'), timeMs: milliseconds(cell) };
      after = columns.length === ANCHORS_A_READ ? columns.at(-1)?.[0] : undefined;
    }
  }

  async *entries(range: { prefix: string } | { row: string }): AsyncGenerator<PageEntry, void, void> {
    const rows = 'row' in range ? { keys: [range.row] } : range;
    for await (const row of this.#table.createReadStream({ ...rows, filter: ENTRY, decode: false })) {
      yield {
        row: row.id.toString(),
        language: languageOf(row),
        timesMs: (row.data['contents']?.[''] ?? []).map(milliseconds),
        anchors: Object.keys(row.data['anchor'] ?? {}).length,
      };
    }
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  async #row(key: string, filter: readonly unknown[]): Promise<GoogleRow | undefined> {
    const [rows] = await this.#table.getRows({ keys: [key], filter, decode: false });
    return rows[0];
  }
}

/** The language of the newest contents: an older version's says nothing about it. */
function languageOf(row: GoogleRow | undefined): string | undefined {
  const language = row?.data['language']?.['']?.[0];
  return language && language.timestamp === row?.data['contents']?.['']?.[0]?.timestamp
    ? language.value.toString('utf8')
    : undefined;
}

const milliseconds = ({ timestamp }: GoogleCell): number => Number(BigInt(timestamp) / 1000n);

/** Whether Google's client is there already, so that nothing has to be fetched. */
export async function hasGoogleClient(): Promise<boolean> {
  return existsSync(keptIn(await interopTools()));
}

interface InteropTools {
  readonly CACHE: string;
  nodeClient(): Promise<{ folder: string; version: string }>;
}

async function interopTools(): Promise<InteropTools> {
  return (await import(pathToFileURL(join(repositoryRoot(), 'scripts', 'lib', 'tools.mjs')).href)) as InteropTools;
}

/** A folder a major version of Node, since npm picks the client's version by it. */
function keptIn({ CACHE }: InteropTools): string {
  return join(CACHE, `node${process.versions.node.split('.', 1)[0]}`, 'node_modules', '@google-cloud', 'bigtable');
}

async function googleClient(
  address: string,
  say: (words: string) => void,
): Promise<{ client: GoogleClient; version: string }> {
  await reach(address);
  const tools = await interopTools();
  if (!existsSync(keptIn(tools)))
    say(`npm installs @google-cloud/bigtable into ${tools.CACHE} (once; it may take a minute)`);
  const { folder, version } = await tools.nodeClient();
  // this variable is how Google's clients are told of a server that is not the cloud's
  process.env['BIGTABLE_EMULATOR_HOST'] = address;
  // and by this one it does not look for a cloud around this machine, and complain
  process.env['METADATA_SERVER_DETECTION'] ??= 'none';
  const { Bigtable } = createRequire(join(folder, 'package.json'))('@google-cloud/bigtable') as GoogleModule;
  return { client: new Bigtable({ projectId: TABLE }), version };
}

/** Google's client would go on trying for minutes. */
async function reach(address: string): Promise<void> {
  const [, host, port] = /^\[?([^\]]*)\]?:(\d+)$/.exec(address) ?? [];
  if (host === undefined) throw new Error(`"${address}" is not an address; write it HOST:PORT`);
  const socket = connect({ host, port: Number(port), timeout: REACH_MS });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve).once('error', reject);
      socket.once('timeout', () => reject(new Error(`no answer in ${REACH_MS} ms`)));
    });
  } catch (error) {
    throw new Error(
      `no server at ${address} (${error instanceof Error ? error.message : String(error)}); 'npm start' starts one`,
    );
  } finally {
    socket.destroy();
  }
}

/** The folder with package.json, whether this runs from the sources or from what was built of them. */
export function repositoryRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return folder;
}
