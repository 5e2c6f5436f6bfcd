/** The creation of METADATA's rows that is sent again after they have changed. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type InterceptedCall, inCluster } from '../../test/cluster.ts';
import { allRows, assertSound } from '../../test/metadata-rows.ts';
import { TABLES } from '../../test/tables.ts';
import { Code } from '../base/index.ts';
import { ByteBudget, requestContext, sleep } from '../env/index.ts';
import { keyOfRow, type MetadataCommit, metadataKey, type MetadataRow } from '../metadata/index.ts';
import type { Cell } from '../model/index.ts';
import { callServer, type CommitOutcome } from '../protocol/index.ts';
import type { TabletApi } from '../tablet/index.ts';
import { MetadataCommits } from './metadata-commits.ts';

const T = `${TABLES}t`;
const SETTLED_MS = 10_000;

describe('a creation of rows that is sent again', () => {
  for (const [what, splitAgain] of [
    ['merged', undefined],
    ['merged and split elsewhere', 'c'],
  ] as const)
    test(
      `creates none of those that were ${what}`,
      inCluster(async (cluster, tables) => {
        let creation: InterceptedCall | undefined;
        cluster.onCall = (call) => {
          const { method, message } = call;
          const { commits } = message as { readonly commits?: readonly MetadataCommit[] };
          if (method === 'commit' && commits![0]?.event.kind === 'created') creation = call;
          return undefined;
        };
        await tables.create('t', { splits: ['k', 't'] });
        for (const row of ['a', 'l', 'z']) await tables.set('t', row, 'v');
        await cluster.client.mergeTablets(tables.context(), T, 'k');
        if (splitAgain !== undefined) await cluster.client.splitTablets(tables.context(), T, splitAgain);
        // the parts of a split are compacted by themselves
        await sleep(cluster.clock, SETTLED_MS);
        const { address, message } = creation!;
        const before = await allRows(cluster.env, tables.context());
        const sent = message as { commits: readonly MetadataCommit[]; master: number; server: string };
        const again = (commits: readonly MetadataCommit[]): Promise<readonly CommitOutcome[]> =>
          callServer(cluster.env.transport, address, 'commit', { ...sent, commits }, tables.context());
        assert.deepEqual(
          (await again(sent.commits)).map(({ kind }) => kind),
          ['refused', 'refused', 'refused'],
        );
        // as the rows of a table with many tablets, which come in several calls
        const withoutLast = sent.commits.filter(({ rows }) => rows[0]!.row!.range.end !== undefined);
        assert.deepEqual(
          (await again(withoutLast)).map(({ kind }) => kind),
          ['refused', 'refused'],
        );
        const after = await allRows(cluster.env, tables.context());
        assertSound(after);
        assert.deepEqual(after, before);
        assert.deepEqual(await tables.rows('t'), ['a', 'l', 'z']);
      }),
    );

  test('is not judged while rows are removed whose removal no read sees yet', async () => {
    const context = requestContext({ budget: new ByteBudget(1024) });
    const key = metadataKey('00000010', 'k');
    const row: MetadataRow = {
      tableId: '00000010',
      range: { start: '', end: 'k' },
      server: undefined,
      epoch: 0,
      version: 1,
      commitId: 'c',
      files: {},
      redo: { epoch: 0, sequence: 0 },
      logs: [],
    };
    assert.equal(keyOfRow(row), key);
    const event = { kind: 'created', atMicros: 1 } as const;
    const create: MetadataCommit = { id: 'c', event, rows: [{ key, expected: undefined, row }] };
    const remove: MetadataCommit = { id: 'd', event, rows: [{ key, expected: undefined, row: undefined }] };
    let durable = (): void => {};
    const tablet = {
      state: { range: { start: '', end: undefined } },
      async *read() {},
      transact: async (
        ...[, , , decide]: [unknown, unknown, unknown, (cells: ReadonlyMap<string, readonly Cell[]>) => unknown]
      ) => {
        decide(new Map([[key, []]]));
        await new Promise<void>((resolve) => (durable = resolve));
      },
    } as unknown as TabletApi;
    const commits = new MetadataCommits();
    const removed = commits.commit(tablet, [remove], context);
    const created = commits.commit(tablet, [create], context);
    await assert.rejects(created, { code: Code.UNAVAILABLE });
    durable();
    assert.deepEqual(await removed, [{ kind: 'done' }]);
    const again = commits.commit(tablet, [create], context);
    await new Promise(setImmediate);
    durable();
    assert.deepEqual(await again, [{ kind: 'done' }]);
  });
});
