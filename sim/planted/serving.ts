/** Bugs of leases, logs, recovery and assignment (model A). */
import type { PlantedBug } from './bug.ts';

const WRITER = 'tablet/write/tablet-writer.ts';
const LOADER = 'tabletserver/tablet-loader.ts';
const SERVERS = 'master/servers.ts';
const COMMIT = 'metadata/commit.ts';
const FLOORS = 'tabletserver/epoch-floors.ts';

const NO_FLOOR = { file: FLOORS, text: 'return this.#floors.get(key) ?? 0;', wrong: 'return 0;' };

export const SERVING_BUGS: readonly PlantedBug[] = [
  {
    name: 'A01',
    title: 'the lease is not checked after the append of a write',
    meeting: 'commit beside a sweep',
    changes: [
      {
        file: WRITER,
        text: 'this.#applyAll(batch.records);\n      this.#checkLease();',
        wrong: 'this.#applyAll(batch.records);',
      },
    ],
  },
  {
    name: 'A02',
    title: 'the log of a dead server is not fenced',
    changes: [{ file: SERVERS, text: 'this.#env.fileSystem.fence(logPathOf(name))', wrong: 'Promise.resolve()' }],
  },
  {
    name: 'A03',
    title: 'tablets of a dead server are given away before its log is fenced',
    changes: [
      {
        file: SERVERS,
        text: 'fencing = this.#dead.get(name) ?? this.#env.fileSystem.fence(logPathOf(name));',
        wrong:
          'this.#env.fileSystem.fence(logPathOf(name)).catch(() => {}); fencing = this.#dead.get(name) ?? Promise.resolve();',
      },
    ],
  },
  {
    name: 'A04',
    title: 'a log is trimmed before the commit of the flush to METADATA',
    changes: [
      {
        file: 'tablet/layers/layer-set.ts',
        text: 'if (firstPosition !== undefined && (first === undefined || firstPosition < first)) first = firstPosition;',
        wrong: '',
      },
    ],
  },
  {
    name: 'A05',
    title: 'commits to METADATA are unconditional',
    changes: [
      {
        file: COMMIT,
        text: 'if (commit.rows.every(({ key, expected }) =>',
        wrong: 'if (commit.id || commit.rows.every(({ key, expected }) =>',
      },
    ],
  },
  {
    name: 'A06',
    title: 'commits are conditional on the epoch alone',
    meeting: 'sweep at a reused address',
    changes: [
      {
        file: COMMIT,
        text: 'row.epoch === expected.epoch && row.version === expected.version',
        wrong: 'row.epoch === expected.epoch',
      },
    ],
  },
  {
    name: 'A07',
    title: 'assignments are unconditional',
    meeting: 'split of METADATA under commits',
    changes: [
      {
        file: COMMIT,
        text: 'if (commit.rows.every(({ key, expected }) =>',
        wrong: "if (commit.event.kind === 'assigned' || commit.rows.every(({ key, expected }) =>",
      },
      {
        file: 'tabletserver/master-fence.ts',
        text: 'if (masterEpoch < this.#highestEpoch)',
        wrong: 'if (masterEpoch < 0)',
      },
    ],
  },
  {
    name: 'A08',
    title: 'a recovery replays the log of the last owner alone',
    changes: [
      {
        file: LOADER,
        text: 'logs.filter((log) => log === openLog || log !== services.logPath)',
        wrong: 'logs.filter((log) => log === openLog || log !== services.logPath).slice(-1)',
      },
    ],
  },
  {
    name: 'A09',
    title: 'an assignment overwrites the list of logs',
    changes: [
      { file: 'metadata/commit.ts', text: 'row.logs.includes(log) ? row.logs : [...row.logs, log]', wrong: '[log]' },
    ],
  },
  {
    name: 'A10',
    title: 'an assignment does not list the log of the new owner',
    changes: [
      { file: 'metadata/commit.ts', text: 'row.logs.includes(log) ? row.logs : [...row.logs, log]', wrong: 'row.logs' },
      {
        file: 'master/new-rows.ts',
        text: 'assert(row.logs.includes(logPathOf(row.server.name)),',
        wrong: 'assert(true,',
      },
    ],
  },
  {
    name: 'A11',
    title: "records are replayed in the order of their servers' own sequences",
    meeting: 'deaths beside a sweep',
    changes: [
      {
        file: 'tabletserver/log-replay.ts',
        text: 'a.epoch - b.epoch || a.sequence - b.sequence',
        wrong: 'a.sequence - b.sequence',
      },
    ],
  },
  {
    name: 'A12',
    title: 'redo points are compared by the sequence alone',
    changes: [
      {
        file: 'tabletserver/log-replay.ts',
        text: 'if (isAfter(record, redo) && record.touches(range))',
        wrong: 'if (record.sequence > redo.sequence && record.touches(range))',
      },
    ],
  },
  {
    name: 'A13',
    title: 'a lease counts from the answer to its keep-alive, without a margin',
    changes: [
      { file: 'env/calls/lease.ts', text: 'leaseMs * (1 - MAX_DRIFT) - MARGIN_MS', wrong: 'leaseMs' },
      {
        file: 'env/calls/lease.ts',
        text: 'renewed(sent: Instant): void {',
        wrong: 'renewed(_sent: Instant): void { const sent = this.now();',
      },
    ],
  },
  {
    name: 'A14',
    title: 'reads do not check the lease',
    meeting: 'unheard change of a schema',
    changes: [
      {
        file: 'tablet/contract/serving-state.ts',
        text: 'if (!this.#host.leaseHeld())',
        wrong: 'if (this.#phase === "loading")',
      },
    ],
  },
  {
    name: 'A15',
    title: 'a write is applied before its append is durable',
    meeting: 'crash under slow appends',
    changes: [
      { file: WRITER, text: 'this.#applyAll(batch.records);', wrong: '' },
      {
        file: WRITER,
        text: 'batch.records.push({ change, sequence, lock, hotRow, applying: undefined });',
        wrong:
          'batch.records.push({ change, sequence, lock, hotRow, applying: undefined }); this.#applyAll(batch.records.slice(-1));',
      },
    ],
  },
  {
    name: 'A16',
    title: 'a tablet is moved without its second flush, and its logs are dropped',
    meeting: 'flush in a load',
    changes: [
      { file: LOADER, text: 'await tablet.close({ flush });', wrong: 'await tablet.close({ flush: false });' },
      { file: LOADER, text: '!flush || tablet.oldestUnflushed === undefined,', wrong: 'true,' },
    ],
  },
  {
    name: 'A17',
    title: 'a tablet is unloaded while appends of it are in flight',
    meeting: 'flush in a load',
    changes: [
      {
        file: 'tablet/tablet.ts',
        text: 'await this.#parts.writer.drain();\n    if (options.flush)',
        wrong: 'if (options.flush)',
      },
    ],
  },
  {
    name: 'A18',
    title: 'a server keeps no floor of a tablet that it released',
    meeting: 'shutdown in an unload',
    changes: [NO_FLOOR],
  },
  {
    name: 'A19',
    title: 'the logs of earlier owners are dropped from the row before their records are in files',
    meeting: 'divisions beside a sweep',
    changes: [
      {
        file: 'tablet/layers/tablet-commits.ts',
        text: 'await this.#commit(list, redo, logs);',
        wrong: 'await this.#commit(list, redo, [this.#host.logPath]);',
      },
    ],
  },
  {
    name: 'A21',
    title: 'a commit that is not answered in time is taken for a failure',
    meeting: 'split of METADATA under commits',
    changes: [
      {
        file: 'locator/metadata-client.ts',
        text: 'if (!error.retry && !progress.maybeDone && error.code !== Code.DEADLINE_EXCEEDED) throw error;',
        wrong: 'if (!progress.maybeDone) throw error;',
      },
    ],
  },
  {
    name: 'A25',
    title: 'a server loads what it is told to, whatever the row says',
    changes: [
      NO_FLOOR,
      {
        file: LOADER,
        text: 'if (row?.server?.name !== serverName || row.epoch !== epoch) {',
        wrong: 'if (row === undefined) {',
      },
      { file: LOADER, text: 'assert(row.server?.name === this.#options.serverName,', wrong: 'assert(true,' },
    ],
  },
  {
    name: 'N14',
    title: 'a server that is ending says that it has released a tablet that it has left to be replayed',
    meeting: 'shutdown in an unload',
    changes: [
      {
        file: LOADER,
        text: 'if (this.#stopped) throw ending();\n    this.#damaged.delete(key);',
        wrong: 'this.#damaged.delete(key);',
      },
    ],
  },
  {
    name: 'N15',
    title: 'a server that is ending trims its log without regard to tablets that it has left to be replayed',
    meeting: 'shutdown in an unload',
    changes: [
      { file: LOADER, text: 'if (flush || !this.#stopped) budget.remove(served);', wrong: 'budget.remove(served);' },
    ],
  },
  {
    name: 'N16',
    title: 'a change of a schema is forgotten where the file cannot be read at first',
    meeting: 'unheard change of a schema',
    changes: [{ file: 'locator/schema-cache.ts', text: 'if (!cannotBeUnderstood(thrown)) missed();', wrong: '' }],
  },
  {
    name: 'N17',
    title: 'files of buffered writes are committed before the records of the writes are durable',
    changes: [{ file: 'tablet/compact/flusher.ts', text: 'await this.#writer.allDurable();', wrong: '' }],
  },
  {
    name: 'N22',
    title: 'a server takes back a tablet that was given to another one',
    changes: [
      {
        file: 'tabletserver/unclaimed-tablets.ts',
        text: 'row?.server?.name !== name || row.epoch !== epoch',
        wrong: 'row === undefined',
      },
    ],
  },
  {
    name: 'N27',
    title: 'the log does not keep the tokens of writes: a write that is repeated after a recovery is made twice',
    changes: [
      { file: 'commitlog/append-encoder.ts', text: 'this.#fields(record.token);', wrong: 'this.#fields(undefined);' },
    ],
  },
];
