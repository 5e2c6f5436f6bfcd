/**
 * Judges that look inside the cluster, at what no client sees: the storage as recovery would find it, the tablets that
 * servers serve, and what the roles say of themselves. `log-judge.ts` judges the logs.
 */
import { quote } from '../../src/base/index.ts';
import { type FileSystem, type LogAppend, ManualClock } from '../../src/env/index.ts';
import {
  checkDatabase,
  type CheckReport,
  type FileContents,
  type InspectedTablet,
  type WholeFile,
} from '../../src/inspect/index.ts';
import { nativeCodecs } from '../../src/platform/index.ts';
import type { RowRange } from '../../src/model/index.ts';
import type { Cluster } from './cluster.ts';
import type { LogJudge } from './log-judge.ts';
import type { Verdicts } from './verdicts.ts';

/** Findings that a report of a failure has. */
const MAX_FINDINGS = 5;
const CODECS = nativeCodecs();

/**
 * The whole storage at one instant: METADATA can be recovered as it is, it partitions every table, and no file that it
 * lists is missing or damaged (I3, I4). Lost files of the lock service are there, as far as it goes. A check takes no
 * simulated time.
 */
export class StorageJudge {
  readonly #cluster: Cluster;
  readonly #verdicts: Verdicts;
  /** Files never change, so each is read once. */
  readonly #wholeFiles = new Map<string, WholeFile>();
  readonly #metadataFiles = new Map<string, FileContents>();

  constructor(cluster: Cluster, verdicts: Verdicts) {
    this.#cluster = cluster;
    this.#verdicts = verdicts;
  }

  /**
   * `isQuick`: logs are taken as the judge of logs knows them, and files as earlier quick checks have read them, which is
   * most of the work.
   */
  async check({ isQuick }: { readonly isQuick: boolean }): Promise<CheckReport> {
    const { store, locks } = this.#cluster;
    const all = [...(await locks.service.list('')), ...locks.lostFiles];
    const files = all.filter(({ sessionId }) => sessionId === undefined).sort((a, b) => (a.path < b.path ? -1 : 1));
    const components = {
      fileSystem: isQuick ? withKnownLogs(store.files, store.logJudge) : withLogsReadOnce(store.files),
      codecs: CODECS,
      // it stands still, so the check never yields
      clock: new ManualClock(),
      readAllLockFiles: async () => ({ files, damages: [], count: files.length }),
    };
    const tablets: InspectedTablet[] = [];
    const report = await checkDatabase(isQuick ? { ...components, metadataFiles: this.#metadataFiles } : components, {
      onTablet: (tablet) => tablets.push(tablet),
      ...(isQuick && { wholeFiles: this.#wholeFiles }),
    });
    const lines = report.findings.slice(0, MAX_FINDINGS).map((finding) => JSON.stringify(finding));
    if (lines.length > 0) this.#verdicts.add('storage', lines.join('\n'));
    else this.#compareRows(tablets);
    return report;
  }

  /** METADATA as recovery would find it is what the commits have made of it. */
  #compareRows(tablets: readonly InspectedTablet[]): void {
    const judge = this.#cluster.store.metadataJudge;
    for (const { key, row } of tablets) {
      const { version, commitId } = judge.row(key) ?? {};
      if (version === row.version && commitId === row.commitId) continue;
      const message = `row ${quote(key)} would be recovered at version ${row.version}, it is at ${version}`;
      this.#verdicts.add('storage', message);
    }
    if (tablets.length !== judge.rows)
      this.#verdicts.add('storage', `${tablets.length} rows of METADATA of ${judge.rows} are found`);
  }
}

function withKnownLogs(files: FileSystem, logs: LogJudge): FileSystem {
  return {
    ...files,
    listLogs: async (prefix) =>
      logs
        .logs()
        .filter((log) => log.startsWith(prefix))
        .sort(),
    readLog: async function* (path, from) {
      yield* logs.appendsOf(path, from);
    },
  };
}

/** Nothing changes during a check: each log is read once, whole. */
function withLogsReadOnce(files: FileSystem): FileSystem {
  const read = new Map<string, readonly LogAppend[]>();
  return {
    ...files,
    readLog: async function* (path, from = 0) {
      let appends = read.get(path);
      if (appends === undefined) {
        const all: LogAppend[] = [];
        for await (const append of files.readLog(path)) all.push(append);
        read.set(path, all);
        appends = all;
      }
      for (const append of appends) if (append.position >= from) yield append;
    },
  };
}

/** No two servers whose leases surely hold serve one row (I2). */
export function judgeServing(cluster: Cluster, verdicts: Verdicts): void {
  const tables = new Map<string, { readonly range: RowRange; readonly owner: string }[]>();
  for (const server of cluster.liveServers()) {
    if (!server.leaseHeld()) continue;
    for (const { tableId, range, epoch } of server.tablets.all()) {
      const tablets = tables.get(tableId) ?? [];
      tables.set(tableId, tablets);
      tablets.push({ range, owner: `${server.address} at epoch ${epoch}` });
    }
  }
  for (const [tableId, tablets] of tables) {
    tablets.sort((a, b) => (a.range.start < b.range.start ? -1 : 1));
    for (const [i, { range, owner }] of tablets.entries()) {
      const next = tablets[i + 1];
      if (next !== undefined && (range.end === undefined || next.range.start < range.end))
        verdicts.add('one server', `row ${quote(next.range.start)} of table ${tableId}: ${owner}, and ${next.owner}`);
    }
  }
}

/** What no role says of itself, and what it says only of bytes that the storage has returned wrongly. */
const NEVER = /invariant|METADATA lists is missing/;
const OF_DAMAGE = /damaged|is missing/;

/**
 * No role says that one of its invariants is broken, or that a tablet is damaged. `mayShowDamage`: the storage has
 * returned wrong bytes.
 */
export function judgeLine(verdicts: Verdicts, process: string, line: string, mayShowDamage: boolean): void {
  if (NEVER.test(line) || (!mayShowDamage && OF_DAMAGE.test(line))) verdicts.add('roles', `${process}: ${line}`);
}
