/** The Webtable in a directory, through the embedded library. */
import {
  type Database,
  type FamilyOptions,
  type Row,
  open,
  RowMutation,
  type RowFilter,
  type Table,
} from '../../src/embedded/index.ts';
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

/** The time of every version of the contents, the newest language, and whether there are anchors. */
const ENTRY: RowFilter = {
  kind: 'interleave',
  filters: [
    { kind: 'chain', filters: [{ kind: 'columnRange', family: 'contents' }, { kind: 'stripValue' }] },
    {
      kind: 'chain',
      filters: [
        { kind: 'columnRange', family: 'language' },
        { kind: 'cellsPerColumnLimit', cells: 1 },
      ],
    },
    {
      kind: 'chain',
      filters: [
        { kind: 'columnRange', family: 'anchor' },
        { kind: 'cellsPerRowLimit', cells: MAX_COUNTED },
        { kind: 'stripValue' },
      ],
    },
  ],
};

export class EmbeddedStore implements Store {
  readonly name: string;
  readonly #database: Database;
  readonly #table: Table;

  private constructor(name: string, database: Database) {
    this.name = name;
    this.#database = database;
    this.#table = database.table(TABLE);
  }

  /** Opens the directory, ':memory:' too, and makes the table if it is not there. */
  static async open(directory: string): Promise<EmbeddedStore> {
    const database = await open(directory);
    const families: Record<string, FamilyOptions> = {};
    for (const [family, maxVersions] of Object.entries(VERSIONS)) families[family] = { maxVersions };
    if (!(await database.hasTable(TABLE))) await database.createTable(TABLE, { families });
    return new EmbeddedStore(`the embedded library, ${directory}`, database);
  }

  write(writes: readonly RowWrite[]): Promise<void> {
    return this.#table.applyAll(
      writes.map(({ row, cells }) => {
        const mutation = new RowMutation(row);
        for (const { family, qualifier, value, timeMs } of cells)
          mutation.set({ family, qualifier }, value, new Date(timeMs));
        return mutation;
      }),
    );
  }

  async page(row: string, atMs?: number): Promise<StoredPage | undefined> {
    const at = atMs === undefined ? {} : { at: new Date(atMs) };
    const found = await this.#table.get(row, { families: ['contents', 'language'], ...at });
    const contents = found?.get('contents:');
    if (!contents) return undefined;
    const language = found?.get('language:');
    return {
      contents: contents.value,
      timeMs: milliseconds(contents.timestamp),
      language: language?.timestamp === contents.timestamp ? language.text : undefined,
    };
  }

  async *anchors(row: string): AsyncGenerator<Anchor, void, void> {
    let from: { readonly start?: string } | undefined = {};
    while (from !== undefined) {
      const piece: Row | undefined = await this.#table.get(row, {
        columnRange: { family: 'anchor', ...from },
        cellsPerRow: ANCHORS_A_READ,
      });
      for (const cell of piece?.cells ?? [])
        yield { from: cell.qualifier.toString('utf8'), text: cell.text, timeMs: milliseconds(cell.timestamp) };
      const last: Buffer | undefined = piece?.cells[ANCHORS_A_READ - 1]?.qualifier;
      from = last && { start: `${last.toString('utf8')}\0` };
    }
  }

  async *entries(range: { prefix: string } | { row: string }): AsyncGenerator<PageEntry, void, void> {
    const rows = 'row' in range ? { rows: [range.row] } : range;
    for await (const row of this.#table.scan({ ...rows, filter: ENTRY, versions: 'all' })) {
      const language = row.get('language:');
      yield {
        row: row.name,
        language: language?.timestamp === row.get('contents:')?.timestamp ? language?.text : undefined,
        timesMs: row.versions('contents:').map(({ timestamp }) => milliseconds(timestamp)),
        anchors: row.cells.filter(({ family }) => family === 'anchor').length,
      };
    }
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}

const milliseconds = (micros: bigint): number => Number(micros / 1000n);
