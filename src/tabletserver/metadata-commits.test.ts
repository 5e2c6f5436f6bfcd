import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ByteBudget, requestContext } from '../env/index.ts';
import { type MetadataCommit, metadataKey } from '../metadata/index.ts';
import type { Cell } from '../model/index.ts';
import type { TabletApi } from '../tablet/index.ts';
import { MetadataCommits } from './metadata-commits.ts';

const key = metadataKey('00000010', undefined);
const commit: MetadataCommit = {
  id: 'c',
  event: { kind: 'released', atMicros: 1 },
  rows: [{ key, expected: { epoch: 1, version: 1 }, row: undefined }],
};

/** The part of a tablet that a commit needs: it decides once for each of `reads`, on those rows. */
function tabletOf(...reads: readonly ReadonlyMap<string, readonly Cell[]>[]): TabletApi {
  const transact = async (
    ...[, , , decide]: [unknown, unknown, unknown, (cells: unknown) => unknown]
  ): Promise<void> => {
    for (const cells of reads) decide(cells);
  };
  return { transact } as unknown as TabletApi;
}

test('a commit is judged once, by the rows it names', async () => {
  const context = requestContext({ budget: new ByteBudget(1024) });
  const none = new Map<string, readonly Cell[]>([[key, []]]);
  assert.deepEqual(await new MetadataCommits().commit(tabletOf(none), [commit], context), [{ kind: 'done' }]);
  await assert.rejects(
    new MetadataCommits().commit(tabletOf(none, none), [commit], context),
    /commits are judged once/,
  );
  await assert.rejects(new MetadataCommits().commit(tabletOf(), [commit], context), /each commit was judged/);
  await assert.rejects(
    new MetadataCommits().commit(tabletOf(new Map()), [commit], context),
    /a commit is judged by a row that was read/,
  );
});
