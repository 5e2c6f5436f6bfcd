import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MetadataJudge } from '../../sim/world/metadata-judge.ts';
import { type NewRecord, Origin, recordsOf, ServerLog } from '../../src/commitlog/index.ts';
import { MemoryFileSystem } from '../../src/env/index.ts';
import {
  commitOfMerge,
  commitOfRow,
  commitOfSplit,
  encodeRootFile,
  encodeSchema,
  keyOfRow,
  type MetadataCommit,
  METADATA_SCHEMA,
  METADATA_TABLE_ID,
  type MetadataRow,
  mutationsOf,
  ROOT_RANGE,
  schemaPath,
  USER_RANGE,
} from '../../src/metadata/index.ts';

const LOG = 'logs/one';
const OTHER_LOG = 'logs/two';
const USERS = '00000001';
const FILE = 'sstables/one-0';

function row(tableId: string, range: MetadataRow['range'], fields: Partial<MetadataRow> = {}): MetadataRow {
  return {
    tableId,
    range,
    server: { name: 'one', address: 'a' },
    epoch: 1,
    version: 1,
    commitId: 'first',
    files: {},
    redo: { epoch: 0, sequence: 0 },
    logs: [LOG],
    ...fields,
  };
}

/** A judge that has seen a database with one table of one tablet, and the log that goes on. */
class Judged {
  readonly judge = new MetadataJudge();
  readonly found: string[] = [];
  readonly #fileSystem = new MemoryFileSystem();
  #log: ServerLog | undefined;
  #seen = 0;
  #ids = 0;

  static async open(): Promise<Judged> {
    const judged = new Judged();
    judged.judge.onViolation = (what) => judged.found.push(what);
    judged.#log = await ServerLog.open({ fileSystem: judged.#fileSystem, path: LOG });
    judged.judge.lockFileChanged('root', encodeRootFile(row(METADATA_TABLE_ID, ROOT_RANGE)));
    judged.judge.fileCreated(FILE);
    await judged.commit(judged.change(undefined, row(METADATA_TABLE_ID, USER_RANGE)));
    await judged.commit(judged.change(undefined, row(USERS, { start: '', end: undefined }, { files: { '': [FILE] } })));
    judged.judge.lockFileChanged(schemaPath('t'), encodeSchema({ ...METADATA_SCHEMA, name: 't', id: USERS }));
    assert.deepEqual(judged.found, []);
    return judged;
  }

  get users(): MetadataRow {
    return row(USERS, { start: '', end: undefined }, { files: { '': [FILE] } });
  }

  change(before: MetadataRow | undefined, after: MetadataRow | undefined): MetadataCommit {
    return commitOfRow(
      `c${this.#ids++}`,
      { kind: 'compacted', atMicros: 1 },
      keyOfRow((after ?? before)!),
      before,
      after,
    );
  }

  /** Servers are asked for the commit, and one of them writes what it says. */
  async commit(commit: MetadataCommit, rows = mutationsOf(commit)): Promise<void> {
    this.judge.asked([commit]);
    await this.write(METADATA_TABLE_ID, 1, rows);
  }

  async write(tableId: string, epoch: number, rows: ReturnType<typeof mutationsOf>, log = LOG): Promise<void> {
    const body = { kind: 'rows', rows: rows.map(([key, mutations]) => ({ row: key, mutations })) } as const;
    const record: NewRecord = { tableId, epoch, commitMicros: 1, origin: Origin.user, body };
    await this.#log!.append(record).append.durable;
    for await (const { position, bytes } of this.#fileSystem.readLog(LOG, this.#seen)) {
      if (position < this.#seen) continue;
      this.#seen = position + 1;
      this.judge.appended(log, recordsOf(log, { position, bytes }));
    }
  }

  split(at: string): MetadataCommit {
    const [now] = [this.users];
    const parts = [
      { start: '', end: at },
      { start: at, end: undefined },
    ].map((range) => ({ ...now, range }));
    return commitOfSplit(`c${this.#ids++}`, 1, now, [parts[0]!, parts[1]!]);
  }
}

const put = (key: string): ReturnType<typeof mutationsOf> => [
  [key, [{ kind: 'setCell', family: 'f', qualifier: '', timestamp: 1, value: Buffer.from('x') }]],
];

describe('the judge of METADATA', () => {
  test('accepts commits, splits, merges, deletions and writes', async () => {
    const judged = await Judged.open();
    const split = judged.split('m');
    await judged.commit(split);
    await judged.write(USERS, 1, put('a'));
    const [low, high] = split.rows.map(({ row: after }) => after!);
    const released = [low, high].map((before) =>
      judged.change(before, { ...before!, epoch: 2, server: undefined, logs: [] }),
    );
    for (const commit of released) await judged.commit(commit);
    const [a, b] = released.map(({ rows }) => rows[0]!.row!);
    const merge = commitOfMerge('merge', 1, a!, b!);
    await judged.commit(merge);
    judged.judge.lockFileChanged(schemaPath('t'), undefined);
    await judged.commit(judged.change(merge.rows[1]!.row, undefined));
    judged.judge.fileDeleted(FILE, 'two');
    judged.judge.logRemoved(OTHER_LOG);
    assert.deepEqual(judged.found, []);
    assert.deepEqual([judged.judge.counts.splits, judged.judge.counts.merges], [1, 1]);
  });

  test('a row that a merge removes may be one that another commit was to remove', async () => {
    const judged = await Judged.open();
    const split = judged.split('m');
    await judged.commit(split);
    const released = split.rows.map(({ row: before }) =>
      judged.change(before, { ...before!, epoch: 2, server: undefined, logs: [] }),
    );
    for (const commit of released) await judged.commit(commit);
    const [a, b] = released.map(({ rows }) => rows[0]!.row!);
    judged.judge.asked([judged.change(a, undefined)]);
    await judged.commit(commitOfMerge('merge', 1, a!, b!));
    assert.deepEqual(judged.found, []);
  });

  test("I6: finds a record of an epoch before the row's", async () => {
    const judged = await Judged.open();
    const { users } = judged;
    await judged.commit(
      judged.change(users, { ...users, version: 2, epoch: 2, server: { name: 'two', address: 'b' } }),
    );
    await judged.write(USERS, 1, put('a'));
    assert.match(judged.found[0]!, /I6: record \d+ of epoch 1 lands in logs\/one, and .* is at epoch 2/);
  });

  test('I3: finds a row that is missing', async () => {
    const judged = await Judged.open();
    await judged.commit(judged.change(judged.users, undefined));
    assert.match(judged.found[0]!, /I3: the tablets of table 00000001 hold $/);
  });

  test('I4: finds a listed file that is deleted, or that is not there, and a listed log that is removed', async () => {
    const judged = await Judged.open();
    judged.judge.logRemoved(LOG);
    assert.match(judged.found[0]!, /I4: logs\/one is deleted, which the tablet of table 00000000 from "" lists/);
    judged.found.length = 0;
    judged.judge.fileDeleted(FILE, 'two');
    assert.match(judged.found[0]!, /I4: two deletes sstables\/one-0, which the tablet of table 00000001 from "" lists/);
    judged.found.length = 0;
    await judged.commit(judged.change(judged.users, { ...judged.users, files: { '': ['sstables/one-1'] } }));
    assert.match(
      judged.found[0]!,
      /I4: the tablet of table 00000001 from "" lists sstables\/one-1, which is not there/,
    );
  });

  test('I4: finds a file or log that a live server has', async () => {
    const judged = await Judged.open();
    judged.judge.live = { isLive: () => true, holderOf: () => 'two' };
    judged.judge.fileCreated('sstables/one-1');
    judged.judge.fileDeleted('sstables/one-1', 'two');
    judged.judge.logRemoved(OTHER_LOG);
    assert.deepEqual(judged.found, [
      'I4: two deletes sstables/one-1, which two holds',
      'I4: logs/two is deleted, whose server lives',
    ]);
  });

  test('I6: finds a record in a log that its tablet does not list, and one of an epoch that is over', async () => {
    const judged = await Judged.open();
    await judged.write(USERS, 1, put('a'), OTHER_LOG);
    assert.match(judged.found[0]!, /I6: record 3 of epoch 1 lands in logs\/two/);
    judged.found.length = 0;
    await judged.write(USERS, 2, put('a'));
    assert.match(judged.found[0]!, /I6: record 4 of epoch 2 lands in logs\/one/);
    judged.found.length = 0;
    await judged.commit(judged.change(judged.users, { ...judged.users, epoch: 3 }));
    await judged.write(USERS, 1, put('a'));
    assert.match(judged.found[0]!, /I6: record 6 of epoch 1 lands in logs\/one/);
  });

  test('I7: finds a change that no commit expected, a commit that came too late, and one row of two', async () => {
    const unasked = await Judged.open();
    await unasked.write(METADATA_TABLE_ID, 1, mutationsOf(unasked.change(unasked.users, unasked.users)));
    assert.match(unasked.found[0]!, /I7: row .* from version 1 of epoch 1 to version 2 of epoch 1, and no commit/);
    const late = await Judged.open();
    const [first, second] = [late.change(late.users, late.users), late.change(late.users, late.users)];
    await late.commit(first);
    await late.commit(second);
    assert.match(late.found[0]!, /I7: row .* from version 2 of epoch 1 to version 2 of epoch 1, and no commit/);
    const half = await Judged.open();
    const split = half.split('m');
    await half.commit(split, mutationsOf(split).slice(1));
    assert.match(half.found[0]!, /I7: 1 of 2 rows of commit c2 \(split\)/);
  });

  test('I7: finds a deletion of a row that has changed since', async () => {
    const judged = await Judged.open();
    const deletion = judged.change(judged.users, undefined);
    await judged.commit(judged.change(judged.users, judged.users));
    await judged.commit(deletion);
    assert.match(judged.found[0]!, /I7: row .* from version 2 of epoch 1 to none, and no commit/);
  });

  test('I7: finds a root file that is written without a look', async () => {
    const judged = await Judged.open();
    judged.judge.lockFileChanged('root', encodeRootFile(row(METADATA_TABLE_ID, ROOT_RANGE, { version: 3 })));
    assert.match(judged.found[0]!, /I7: the root file changes from version 1 of epoch 1 to version 3/);
  });
});
