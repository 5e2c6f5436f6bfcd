import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inCluster } from '../../test/cluster.ts';
import { rejectsWith, TABLES, type Tables } from '../../test/tables.ts';
import { AssertionError, BigtableError, Code, toBigtableError, unavailable } from '../base/index.ts';
import {
  ByteBudget,
  LocalTransport,
  ManualClock,
  MemoryLockService,
  Metrics,
  requestContext,
  SeededRandom,
  sleep,
} from '../env/index.ts';
import {
  commitOfRow,
  keyOfRow,
  type MetadataCommit,
  metadataKey,
  type MetadataRow,
  ROOT_KEY,
} from '../metadata/index.ts';
import { isNotServing, notServing } from '../protocol/index.ts';
import { Locator } from './locator.ts';
import { MetadataClient } from './metadata-client.ts';

const context = requestContext({ budget: new ByteBudget(1024) });
const row: MetadataRow = {
  tableId: '00000010',
  range: { start: '', end: undefined },
  server: undefined,
  epoch: 1,
  version: 1,
  commitId: 'c',
  files: {},
  redo: { epoch: 0, sequence: 0 },
  logs: [],
};

function client(): MetadataClient {
  const clock = new ManualClock();
  const lockService = new MemoryLockService();
  const parts = { clock, transport: new LocalTransport(clock), lockService, random: new SeededRandom(1) };
  const locator = new Locator({ ...parts, metrics: new Metrics() });
  return new MetadataClient({ ...parts, locator, stopped: () => false });
}

const event = { kind: 'created', atMicros: 1 } as const;
const commit = (...rows: MetadataCommit['rows']): MetadataCommit => ({ id: 'c', event, rows });

const touch = (one: MetadataRow, id: string): MetadataCommit =>
  commitOfRow(id, { kind: 'compacted', atMicros: 0 }, keyOfRow(one), one, { ...one, commitId: '' });

/** A client of its own, in a cluster with a table whose row of METADATA is `row`. */
async function inTable(tables: Tables, stopped = () => false): Promise<{ metadata: MetadataClient; row: MetadataRow }> {
  await tables.create('t');
  const { id } = await tables.service.getTable(tables.context(), `${TABLES}t`);
  const metadata = new MetadataClient({ ...tables.env, locator: new Locator(tables.env), stopped });
  const found = await metadata.readRow(metadataKey(id, undefined), tables.context());
  assert.ok(found);
  return { metadata, row: found };
}

describe('a client of METADATA', () => {
  test(
    'sends a commit again until it knows the outcome, and does it once',
    inCluster(async (cluster, tables) => {
      const { metadata, row: before } = await inTable(tables);
      const failures = [
        notServing('00000000', ''),
        unavailable('the answer is lost'),
        new BigtableError(Code.DEADLINE_EXCEEDED, 'it takes long'),
        // a commit that fails so may have been done before
        new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full'),
      ];
      let sent = 0;
      cluster.onCall = ({ method, go }) => {
        if (method !== 'commit') return undefined;
        const failure = failures[sent++];
        if (failure === undefined) return undefined;
        return sent === 2 ? go().then(() => Promise.reject(failure)) : Promise.reject(failure);
      };
      const outcomes = await metadata.commit([touch(before, 'once')], tables.context());
      assert.deepEqual([outcomes, sent], [[{ kind: 'done' }], 5]);
      const now = await metadata.readRow(keyOfRow(before), tables.context());
      assert.deepEqual([now?.commitId, now?.version], ['once', before.version + 1]);
    }),
  );

  test(
    'fails if a commit was surely not done, its time is over, or its owner has ended',
    inCluster(async (cluster, tables) => {
      let hasEnded = false;
      const { metadata, row: before } = await inTable(tables, () => hasEnded);
      let failure = new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full');
      cluster.onCall = ({ method }) => (method === 'commit' ? Promise.reject(failure) : undefined);
      const commit = (timeoutMs?: number) => metadata.commit([touch(before, 'c')], tables.context(timeoutMs));
      await rejectsWith(Code.RESOURCE_EXHAUSTED, commit());
      failure = notServing('00000000', '');
      await rejectsWith(Code.UNAVAILABLE, commit(1000));
      hasEnded = true;
      await rejectsWith(Code.UNAVAILABLE, commit());
      cluster.onStream = ({ context: { principal } }) => {
        if (principal === 'master') return undefined;
        throw notServing('00000000', '');
      };
      const unknown = new MetadataClient({ ...tables.env, locator: new Locator(tables.env), stopped: () => true });
      await rejectsWith(Code.UNAVAILABLE, unknown.commit([touch(before, 'c')], tables.context()));
      cluster.onStream = () => {
        throw new BigtableError(Code.DATA_LOSS, 'damaged');
      };
      // the failure of the last look at METADATA is over
      await sleep(cluster.clock, 100);
      await rejectsWith(Code.DATA_LOSS, unknown.commit([touch(before, 'c')], tables.context()));
      await rejectsWith(Code.DATA_LOSS, unknown.readRow(keyOfRow(before), tables.context()));
    }),
  );

  test(
    'waits for the outcome of a commit whose answer was lost while METADATA is damaged',
    inCluster(async (cluster, tables) => {
      const { metadata, row: before } = await inTable(tables);
      let sent = 0;
      cluster.onCall = ({ method, go }) =>
        method === 'commit' && sent++ === 0 ? go().then(() => Promise.reject(unavailable('it is lost'))) : undefined;
      let damages = 3;
      cluster.onStream = ({ context: { principal } }) => {
        if (principal === 'master' || sent === 0 || damages-- <= 0) return undefined;
        throw new BigtableError(Code.DATA_LOSS, 'damaged');
      };
      const outcomes = await metadata.commit([touch(before, 'once')], tables.context());
      assert.deepEqual([outcomes, sent, damages], [[{ kind: 'done' }], 2, -1]);
      const now = await metadata.readRow(keyOfRow(before), tables.context());
      assert.deepEqual([now?.commitId, now?.version], ['once', before.version + 1]);
    }),
  );

  test(
    'does not say "not reached" of a commit whose answer was lost before',
    inCluster(async (cluster, tables) => {
      let hasEnded = false;
      const { metadata, row: before } = await inTable(tables, () => hasEnded);
      let sent = 0;
      cluster.onCall = ({ method, go }) => {
        if (method !== 'commit') return undefined;
        if (sent++ === 0) return go().then(() => Promise.reject(unavailable('the answer is lost')));
        hasEnded = true;
        return Promise.reject(notServing('00000000', ''));
      };
      const error = await metadata.commit([touch(before, 'done')], tables.context()).catch(toBigtableError);
      assert.ok(error instanceof BigtableError && error.code === Code.UNAVAILABLE, String(error));
      assert.match(error.message, /may have been carried out/);
      assert.deepEqual([isNotServing(error), sent], [false, 2]);
      hasEnded = false;
      assert.equal((await metadata.readRow(keyOfRow(before), tables.context()))?.commitId, 'done');
    }),
  );

  test(
    'finds a tablet of METADATA that cannot be located at first',
    inCluster(async (cluster, tables) => {
      const { row: before } = await inTable(tables);
      let refusals = 8;
      cluster.onStream = ({ context: { principal } }) => {
        if (principal === 'master' || refusals-- <= 0) return undefined;
        throw notServing('00000000', '');
      };
      const fresh = new MetadataClient({ ...tables.env, locator: new Locator(tables.env), stopped: () => false });
      assert.deepEqual(await fresh.commit([touch(before, 'c')], tables.context()), [{ kind: 'done' }]);
      refusals = 8;
      assert.equal((await fresh.readRow(keyOfRow(before), tables.context()))?.commitId, 'c');
    }),
  );

  test(
    'sends many commits in several calls, and answers each at its index',
    inCluster(async (cluster, tables) => {
      const { metadata, row: before } = await inTable(tables);
      const calls: number[] = [];
      cluster.onCall = ({ method, message }) => {
        if (method === 'commit') calls.push((message as { commits: unknown[] }).commits.length);
        return undefined;
      };
      const commits = Array.from({ length: 300 }, (_, i) =>
        i === 299 ? touch(before, 'last') : touch({ ...before, version: 99 }, `${i}`),
      );
      const outcomes = await metadata.commit(commits, tables.context());
      assert.deepEqual(calls, [256, 44]);
      assert.deepEqual(
        outcomes.map(({ kind }) => kind),
        commits.map((_, i) => (i === 299 ? 'done' : 'refused')),
      );
    }),
  );

  test(
    'changes the row of the root tablet by compare-and-set',
    inCluster(async (cluster, tables) => {
      const { metadata } = await inTable(tables);
      const root = await metadata.readRoot(tables.context());
      assert.ok(root);
      const change = (id: string): MetadataCommit =>
        commitOfRow(id, { kind: 'compacted', atMicros: 0 }, ROOT_KEY, root, { ...root, commitId: '' });
      let conflicts = 2;
      cluster.onLockCall = (name, path) =>
        name === 'write' && path === 'root' && conflicts-- > 0
          ? Promise.reject(new BigtableError(Code.ABORTED, 'another version'))
          : undefined;
      assert.deepEqual(await metadata.commit([change('one')], tables.context()), [{ kind: 'done' }]);
      // once more the same, and another that comes too late
      assert.deepEqual(await metadata.commit([change('one')], tables.context()), [{ kind: 'done' }]);
      const [late] = await metadata.commit([change('two')], tables.context());
      assert.equal(late?.kind, 'refused');
      const now = await metadata.readRow(ROOT_KEY, tables.context());
      assert.equal(now?.commitId, 'one');
      cluster.onLockCall = (name, path) =>
        name === 'write' && path === 'root' ? Promise.reject(new BigtableError(Code.DATA_LOSS, 'damaged')) : undefined;
      const next = commitOfRow('three', { kind: 'compacted', atMicros: 0 }, ROOT_KEY, now, {
        ...root,
        ...now,
        commitId: '',
      });
      await rejectsWith(Code.DATA_LOSS, metadata.commit([next], tables.context()));
    }),
  );
});

describe('commits on METADATA', () => {
  test('of no row, or of the root row together with another, are bugs and are not sent', async () => {
    const one = { key: ROOT_KEY, expected: undefined, row };
    const other = { key: metadataKey('00000010', undefined), expected: undefined, row };
    for (const wrong of [commit(), commit(one, other), commit({ ...one, row: undefined })]) {
      await assert.rejects(client().commit([wrong], context), AssertionError);
    }
  });
});
