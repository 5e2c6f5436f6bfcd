/**
 * A judge that knows METADATA's rows at every instant. It sees each append of a commit log when it becomes durable,
 * each change of a file of the lock service, each commit that a server is asked for, and each SSTable when it appears
 * and when it is deleted.
 * - I3: the rows of a table that has a schema partition it.
 * - I4: no row lists a file that is not there, and no file or log that a row lists, or a live server holds, is deleted.
 * - I6: a record is in a log that the row of its tablet lists, and of the row's epoch.
 * - I7: a row changes only by a commit that expected its (epoch, version), together with the commit's other row.
 */
import { quote } from '../../src/base/index.ts';
import type { EncodedRecord, LogRecord } from '../../src/commitlog/index.ts';
import {
  decodeRootFile,
  decodeRow,
  decodeSchema,
  isMetadataTablet,
  LOCATION_FAMILY,
  METADATA_TABLE_ID,
  type MetadataCommit,
  type MetadataKey,
  type MetadataRow,
  parseMetadataKey,
  ROOT_KEY,
  schemaPath,
  USER_RANGE,
} from '../../src/metadata/index.ts';
import type { Cell, Mutation } from '../../src/model/index.ts';
import { logPathOf } from '../../src/protocol/index.ts';

const ROOT_PATH = 'root';

/** What the judge asks of the cluster. */
export interface LiveServers {
  /** True while the server of that log runs and its lease surely holds. */
  isLive(log: string): boolean;
  /** The address of a live server that holds the file; undefined if none does. */
  holderOf(file: string): string | undefined;
}

type Rows = Map<MetadataKey, MetadataRow>;
type MaybeRow = MetadataRow | undefined;

export class MetadataJudge {
  /** Called with what must not be. */
  onViolation: (what: string) => void = () => {};
  /** Called with each change of the tablets themselves, or of their servers. */
  onChange: (what: string) => void = () => {};
  /** Called with each row that changes, the root file too. */
  onRow: (key: MetadataKey, before: MaybeRow, after: MaybeRow) => void = () => {};
  live: LiveServers = { isLive: () => false, holderOf: () => undefined };
  readonly counts = {
    records: 0,
    commits: 0,
    /** Assignments of tablets whose last server had died, and of those whose last server lived. */
    recoveries: 0,
    moves: 0,
    splits: 0,
    metadataSplits: 0,
    merges: 0,
    metadataTablets: 0,
    filesDeleted: 0,
  };
  readonly #tables = new Map<string, Rows>();
  #root: MaybeRow;
  /** Ids of the tables that have a schema, by its path. */
  readonly #schemas = new Map<string, string>();
  /** Commits that servers were asked for, by the keys of their rows. */
  readonly #commits = new Map<MetadataKey, MetadataCommit[]>();
  /** SSTables that exist. */
  readonly #files = new Set<string>();
  /** SSTables that a row lists, or has listed. */
  readonly #listed = new Set<string>();
  /** The log of the server that each tablet had last. */
  readonly #lastLogs = new Map<MetadataKey, string>();

  /** A server is asked to carry out commits. */
  asked(commits: readonly MetadataCommit[]): void {
    for (const commit of commits)
      for (const { key } of commit.rows) {
        const others = this.#commits.get(key);
        if (others === undefined) this.#commits.set(key, [commit]);
        // one that is sent again says the same
        else if (others.every(({ id }) => id !== commit.id)) others.push(commit);
      }
  }

  /** An append with these records became durable that was in no slot before. */
  appended(log: string, records: readonly EncodedRecord[]): void {
    for (const record of records) {
      this.counts.records++;
      this.#judgeRecord(log, record);
      if (record.tableId === METADATA_TABLE_ID) this.#apply(log, record.decode());
    }
  }

  /** A lasting file of the lock service was written, or removed. */
  lockFileChanged(path: string, contents: Uint8Array | undefined): void {
    if (path === ROOT_PATH) {
      const after = contents && decodeRootFile(contents);
      if (!isNext(this.#root, after)) this.#violated(`I7: the root file changes ${changeOf(this.#root, after)}`);
      this.onRow(ROOT_KEY, this.#root, after);
      this.#root = after;
    } else if (path.startsWith(schemaPath(''))) {
      if (contents === undefined) this.#schemas.delete(path);
      else this.#schemas.set(path, decodeSchema(path, contents).id);
      this.#judgePartition(this.#schemas.get(path) ?? '');
    }
  }

  fileCreated(path: string): void {
    this.#files.add(path);
  }

  /** `by`: the process that had it deleted. */
  fileDeleted(path: string, by: string): void {
    if (!this.#files.delete(path)) return;
    this.counts.filesDeleted++;
    for (const row of this.#all())
      if (lists(row, path)) this.#violated(`I4: ${by} deletes ${path}, which ${nameOf(row)} lists`);
    const holder = this.live.holderOf(path);
    // the writer of a file that was never listed may give it up
    const isGivenUp = holder !== undefined && by.startsWith(`${holder}.`) && !this.#listed.has(path);
    if (holder !== undefined && !isGivenUp) this.#violated(`I4: ${by} deletes ${path}, which ${holder} holds`);
  }

  logRemoved(log: string): void {
    for (const row of this.#all())
      if (row.logs.includes(log) || row.pastOwners?.some(({ server }) => logPathOf(server) === log))
        this.#violated(`I4: ${log} is deleted, which ${nameOf(row)} lists`);
    if (this.live.isLive(log)) this.#violated(`I4: ${log} is deleted, whose server lives`);
  }

  /** The number of rows, that of the root tablet included. */
  get rows(): number {
    return [...this.#all()].length;
  }

  row(key: MetadataKey): MetadataRow | undefined {
    return key === ROOT_KEY ? this.#root : this.#tables.get(tableOf(key))?.get(key);
  }

  *#all(): Iterable<MetadataRow> {
    if (this.#root !== undefined) yield this.#root;
    for (const rows of this.#tables.values()) yield* rows.values();
  }

  #judgeRecord(log: string, record: EncodedRecord): void {
    const { tableId, epoch, sequence } = record;
    const judge = (row: MetadataRow): void => {
      if (!record.touches(row.range)) return;
      const isListed = row.logs.includes(log);
      if (isListed && epoch === row.epoch) return;
      const now = `is at epoch ${row.epoch} with logs ${row.logs.join(', ')}`;
      this.#violated(`I6: record ${sequence} of epoch ${epoch} lands in ${log}, and ${nameOf(row)} ${now}`);
    };
    if (tableId === METADATA_TABLE_ID && this.#root !== undefined) judge(this.#root);
    for (const row of this.#tables.get(tableId)?.values() ?? []) judge(row);
  }

  /** A record on METADATA's rows: one or several commits. */
  #apply(log: string, { body }: LogRecord): void {
    if (body.kind !== 'rows') return this.#violated(`I7: rows of METADATA are dropped in ${log}`);
    const changes = body.rows.map(({ row, mutations }) => ({ key: row, states: statesOf(row, mutations) }));
    const ids = new Set(changes.flatMap(({ states }) => states.map((row) => row?.commitId)));
    const found = new Map<MetadataCommit, number>();
    const tables = new Set<string>();
    for (const { key, states } of changes)
      for (const after of states) {
        const before = this.row(key);
        const commit = isNext(before, after) ? this.#commitOf(key, before, after, ids) : undefined;
        if (commit === undefined)
          this.#violated(`I7: row ${quote(key)} changes ${changeOf(before, after)}, and no commit expected that`);
        else found.set(commit, (found.get(commit) ?? 0) + 1);
        this.#set(key, before, after, commit);
        if (before?.range.start !== after?.range.start) tables.add(tableOf(key));
      }
    for (const [{ id, event, rows }, count] of found) {
      this.counts.commits++;
      if (event.kind !== 'compacted') this.onChange(`${event.kind}: ${rows.map(placeOf).join(', ')}`);
      if (count !== rows.length) this.#violated(`I7: ${count} of ${rows.length} rows of commit ${id} (${event.kind})`);
    }
    for (const tableId of tables) this.#judgePartition(tableId);
  }

  #commitOf(key: MetadataKey, before: MaybeRow, after: MaybeRow, ids: Set<unknown>): MetadataCommit | undefined {
    const expects = ({ rows }: MetadataCommit): boolean =>
      rows.some(
        (row) =>
          row.key === key &&
          row.row?.version === after?.version &&
          row.expected?.epoch === before?.epoch &&
          row.expected?.version === before?.version,
      );
    const expecting = (this.#commits.get(key) ?? []).filter(expects);
    if (after !== undefined) return expecting.find(({ id }) => id === after.commitId);
    // a deletion leaves no id: the commit's other row does, if it has one
    return (
      expecting.find(({ id }) => ids.has(id)) ??
      expecting.find(({ rows }) => rows.every(({ row }) => row === undefined))
    );
  }

  #set(key: MetadataKey, before: MaybeRow, after: MaybeRow, commit: MetadataCommit | undefined): void {
    const tableId = tableOf(key);
    const rows: Rows = this.#tables.get(tableId) ?? new Map();
    this.#tables.set(tableId, rows);
    if (after === undefined) rows.delete(key);
    else rows.set(key, after);
    this.onRow(key, before, after);
    if (tableId === METADATA_TABLE_ID) this.counts.metadataTablets = Math.max(this.counts.metadataTablets, rows.size);
    if (after === undefined) return;
    const known = new Set(before ? filesOf(before) : []);
    for (const path of filesOf(after)) {
      this.#listed.add(path);
      if (!known.has(path) && !this.#files.has(path))
        this.#violated(`I4: ${nameOf(after)} lists ${path}, which is not there`);
    }
    this.#count(key, after, commit);
  }

  #count(key: MetadataKey, after: MetadataRow, commit: MetadataCommit | undefined): void {
    const kind = commit?.event.kind;
    // each of the two rows of a split or a merge is seen: the one that stays is counted
    const isLast = commit?.rows.at(-1)?.key === key;
    if (kind === 'split' && isLast) this.counts[isMetadataTablet(key) ? 'metadataSplits' : 'splits']++;
    if (kind === 'merged' && isLast) this.counts.merges++;
    if (after.server === undefined) return;
    const log = logPathOf(after.server.name);
    const last = this.#lastLogs.get(key);
    this.#lastLogs.set(key, log);
    if (kind !== 'assigned' || last === undefined) return;
    if (!this.live.isLive(last)) this.counts.recoveries++;
    else if (last !== log) this.counts.moves++;
  }

  /** The rows of a table that has a schema leave out nothing, and hold nothing twice. */
  #judgePartition(tableId: string): void {
    const rows = [...(this.#tables.get(tableId)?.values() ?? [])];
    if (tableId !== METADATA_TABLE_ID && ![...this.#schemas.values()].includes(tableId)) return;
    let next: string | undefined = tableId === METADATA_TABLE_ID ? USER_RANGE.start : '';
    rows.sort((a, b) => (a.range.start < b.range.start ? -1 : 1));
    for (const { range } of rows) {
      if (range.start !== next) break;
      next = range.end;
      if (next === undefined) break;
    }
    if (next === undefined && rows.at(-1)?.range.end === undefined) return;
    const ranges = rows.map(
      ({ range }) => `${quote(range.start)} to ${range.end === undefined ? 'the end' : quote(range.end)}`,
    );
    this.#violated(`I3: the tablets of table ${tableId} hold ${ranges.join(', ')}`);
  }

  #violated(what: string): void {
    this.onViolation(what);
  }
}

/** What the mutations of one record make of a row, commit by commit; undefined: it is deleted. */
function statesOf(key: MetadataKey, mutations: readonly Mutation[]): MaybeRow[] {
  const states: MaybeRow[] = [];
  let cells: Cell[] = [];
  const end = (): void => {
    if (cells.length > 0) states.push(decodeRow(key, cells));
    cells = [];
  };
  for (const mutation of mutations) {
    if (mutation.kind === 'deleteFromRow') {
      end();
      states.push(undefined);
    } else if (mutation.kind === 'setCell') {
      const { family, qualifier, timestamp = 0, value } = mutation;
      // the first of a row's cells
      if (family === LOCATION_FAMILY) end();
      cells.push({ family, qualifier, timestamp, value });
    }
  }
  end();
  return states;
}

/** The version grows by one, and the epoch never falls. */
function isNext(before: MaybeRow, after: MaybeRow): boolean {
  if (after === undefined) return before !== undefined;
  return after.version === (before?.version ?? 0) + 1 && after.epoch >= (before?.epoch ?? 0);
}

function changeOf(before: MaybeRow, after: MaybeRow): string {
  const state = (row: MaybeRow): string => (row ? `version ${row.version} of epoch ${row.epoch}` : 'none');
  return `from ${state(before)} to ${state(after)}`;
}

/** A row as a commit leaves it, for a reader. */
function placeOf({ key, row }: MetadataCommit['rows'][number]): string {
  const where = row === undefined ? 'is removed' : `at epoch ${row.epoch} with ${row.server?.address ?? 'no server'}`;
  return `${quote(key)} ${where}`;
}

function tableOf(key: MetadataKey): string {
  return parseMetadataKey(key).tableId;
}

function filesOf({ files }: MetadataRow): string[] {
  return Object.values(files).flat();
}

function lists({ files }: MetadataRow, path: string): boolean {
  for (const group in files) if (files[group]!.includes(path)) return true;
  return false;
}

function nameOf({ tableId, range }: MetadataRow): string {
  return `the tablet of table ${tableId} from ${quote(range.start)}`;
}
