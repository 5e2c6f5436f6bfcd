/**
 * Carries out conditional commits on the rows of a METADATA tablet (a commit is a write like any other: logged, fenced,
 * lease-checked). Commits sent together are judged one after another, in one instant and one record of the log.
 */
import { assert, type ByteString } from '../base/index.ts';
import type { RequestContext } from '../env/index.ts';
import {
  decodeRow,
  judge,
  type MetadataCommit,
  type MetadataKey,
  type MetadataRow,
  mutationsOf,
} from '../metadata/index.ts';
import type { Mutation } from '../model/index.ts';
import type { CommitOutcome } from '../protocol/index.ts';
import type { TabletApi } from '../tablet/index.ts';

/** Without the events: no commit is judged by them. */
const JUDGED_FAMILIES = { kind: 'familyNameRegex', regex: 'location|files' } as const;

/** All rows must be in the tablet. */
export async function commitRows(
  tablet: TabletApi,
  commits: readonly MetadataCommit[],
  context: RequestContext,
): Promise<CommitOutcome[]> {
  const outcomes: CommitOutcome[] = [];
  const keys = commits.flatMap(({ rows }) => rows.map(({ key }) => key));
  await tablet.transact(context, keys, JUDGED_FAMILIES, (cells) => {
    const rows = new Map<MetadataKey, MetadataRow | undefined>();
    for (const [key, ofRow] of cells) rows.set(key, decodeRow(key, ofRow));
    const writes = new Map<ByteString, readonly Mutation[]>();
    assert(outcomes.length === 0, 'commits are judged once');
    for (const commit of commits) {
      assert(
        commit.rows.every(({ key }) => rows.has(key)),
        'a commit is judged by a row that was read',
      );
      const verdict = judge(commit, (key) => rows.get(key));
      outcomes.push(
        verdict === 'refused'
          ? { kind: 'refused', rows: commit.rows.map(({ key }) => rows.get(key)) }
          : { kind: 'done' },
      );
      if (verdict !== 'apply') continue;
      for (const { key, row } of commit.rows) rows.set(key, row);
      for (const [key, mutations] of mutationsOf(commit)) writes.set(key, [...(writes.get(key) ?? []), ...mutations]);
    }
    return writes;
  });
  assert(outcomes.length === commits.length, 'each commit was judged');
  return outcomes;
}
