import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Code } from '../base/index.ts';
import { METADATA_SCHEMA, type MetadataRow } from '../metadata/index.ts';
import type { CommitOutcome } from '../protocol/index.ts';
import type { TabletCommit, TabletState } from '../tablet/index.ts';
import { type HostServices, ServedTabletHost } from './tablet-host.ts';

const row: MetadataRow = {
  tableId: '00000010',
  range: { start: '', end: undefined },
  server: { name: 's', address: 'a' },
  epoch: 3,
  version: 7,
  commitId: 'c',
  files: {},
  redo: { epoch: 3, sequence: 5 },
  logs: ['logs/s'],
};
const { tableId, range, epoch, files, redo, logs } = row;
const state = { tableId, range, epoch, files, redo, logs, clips: undefined, lastServerMicros: 0 } satisfies TabletState;
const change: TabletCommit = { files, clips: undefined, redo, logs, lastServerMicros: 0 };

/** A host whose commits are answered when the test says so. */
function fixture(
  of: MetadataRow = row,
  schema = METADATA_SCHEMA,
): { host: ServedTabletHost; answer(...outcomes: CommitOutcome[]): void } {
  let answer: ((outcomes: CommitOutcome[]) => void) | undefined;
  const services = {
    metadata: { commit: () => new Promise<CommitOutcome[]>((resolve) => (answer = resolve)) },
    schema: () => schema,
    logPath: 'logs/s',
    keepChanges: () => 7,
    newestPosition: () => 11,
    uniqueName: () => 'id',
    nowMicros: () => 1,
    serverContext: () => undefined,
  } as unknown as HostServices;
  const fail = (): void => assert.fail('the tablet is lost, or has failed');
  const host = new ServedTabletHost(services, of, undefined as never, fail, fail);
  return { host, answer: (...outcomes) => answer?.(outcomes) };
}

async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await undefined;
}

describe('commits of a tablet', () => {
  test('come one after another: two concurrent ones are a bug', async () => {
    const { host, answer } = fixture();
    const first = host.commit(state, change);
    await assert.rejects(host.commit(state, change), /one commit of a tablet is under way at a time/);
    answer({ kind: 'done' });
    await first;
    assert.equal(host.row.version, 8);
    const second = host.commit(state, change);
    answer({ kind: 'done' });
    await second;
    assert.equal(host.row.version, 9);
  });

  test('have an outcome: a commit without one is not taken for done', async () => {
    const { host, answer } = fixture();
    const commit = host.commit(state, change);
    answer();
    await assert.rejects(commit, /has an outcome/);
    assert.equal(host.row.version, 7);
  });

  test('that are refused though the row is as the tablet knows it fail, and are not made again and again', async () => {
    const { host, answer } = fixture();
    const parts = [
      { ...state, range: { start: '', end: 'm' } },
      { ...state, range: { start: 'm', end: undefined } },
    ] as const;
    const split = host.split(parts);
    answer({ kind: 'refused', rows: [undefined, row] });
    await assert.rejects(split, { code: Code.INTERNAL, message: /whose row is as this server knows it/ });
    const changed = host.commit(state, change);
    answer({ kind: 'refused', rows: [{ ...row, version: 9 }] });
    await turns();
    answer({ kind: 'done' });
    await changed;
    assert.equal(host.row.version, 10);
  });

  test('say where the changes of a stream begin in the log, and where they end once no replay needs it', async () => {
    const changeStream = { retentionMicros: 86_400e6 };
    const { host, answer } = fixture({ ...row, pastOwners: [] }, { ...METADATA_SCHEMA, changeStream });
    const commit = async (logs: readonly string[]): Promise<MetadataRow> => {
      const committed = host.commit(state, { ...change, logs });
      answer({ kind: 'done' });
      await committed;
      return host.row;
    };
    assert.deepEqual(
      [(await commit(['logs/s'])).changesFrom, host.row.changesUntil],
      [7, undefined],
      'writes may come',
    );
    assert.deepEqual([(await commit([])).changesFrom, host.row.changesUntil], [7, 11]);
    const plain = fixture();
    const committed = plain.host.commit(state, { ...change, logs: [] });
    plain.answer({ kind: 'done' });
    await committed;
    assert.equal(plain.host.row.changesUntil, undefined);
  });

  test('are those of its own assignment, and never set its redo point back', async () => {
    const { host } = fixture();
    await assert.rejects(host.commit({ ...state, epoch: 2 }, change), /under the row of its own assignment/);
    const back = { ...change, redo: { epoch: 3, sequence: 4 } };
    await assert.rejects(host.commit(state, back), /redo point of a tablet back/);
  });
});
