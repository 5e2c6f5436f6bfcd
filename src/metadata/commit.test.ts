import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  commitOfMerge,
  commitOfRow,
  commitOfSplit,
  judge,
  type MetadataCommit,
  mutationsOf,
  type Verdict,
} from './commit.ts';
import { cellsOf, metadataRow } from './fixtures.ts';
import { decodeRow, keyOfRow, type MetadataRow } from './metadata-row.ts';

const event = { kind: 'assigned', atMicros: 0 } as const;

/** METADATA as a plain map: judges a commit and applies it as a tablet does. */
class Rows {
  readonly rows = new Map<string, MetadataRow>();

  commit(commit: MetadataCommit): Verdict {
    const verdict = judge(commit, (key) => this.rows.get(key));
    if (verdict !== 'apply') return verdict;
    for (const [key, mutations] of mutationsOf(commit)) {
      const row = decodeRow(key, cellsOf(mutations));
      if (row) this.rows.set(key, row);
      else this.rows.delete(key);
    }
    return verdict;
  }
}

describe('conditional commits', () => {
  test('a commit is applied once, however often it is sent', () => {
    fc.assert(
      fc.property(metadataRow, metadataRow, (first, second) => {
        const rows = new Rows();
        const key = keyOfRow(first);
        const created = commitOfRow('id-1', event, key, undefined, first);
        assert.equal(rows.commit(created), 'apply');
        assert.equal(rows.commit(created), 'done');
        const now = rows.rows.get(key) as MetadataRow;
        assert.equal(now.version, 1);
        const redo = { epoch: now.redo.epoch, sequence: now.redo.sequence + 1 };
        const changed = commitOfRow('id-2', event, key, now, { ...now, files: second.files, redo, logs: second.logs });
        assert.equal(rows.commit(changed), 'apply');
        assert.equal(rows.rows.get(key)?.version, 2);
        assert.equal(rows.commit(changed), 'done');
        assert.equal(rows.commit(created), 'refused');
        assert.deepEqual(rows.rows.get(key)?.files, second.files);
      }),
    );
  });

  test('of two commits on the same state one is refused for ever', () => {
    fc.assert(
      fc.property(metadataRow, fc.array(fc.constantFrom(0, 1), { minLength: 2, maxLength: 10 }), (row, order) => {
        const rows = new Rows();
        const key = keyOfRow(row);
        rows.commit(commitOfRow('create', event, key, undefined, row));
        const now = rows.rows.get(key) as MetadataRow;
        const rivals = [0, 1].map((i) =>
          commitOfRow(`rival-${i}`, event, key, now, {
            ...now,
            epoch: now.epoch + 1,
            server: { name: `s${i}`, address: '' },
          }),
        );
        const winner = order[0] as number;
        for (const [i, which] of order.entries()) {
          assert.equal(
            rows.commit(rivals[which] as MetadataCommit),
            i === 0 ? 'apply' : which === winner ? 'done' : 'refused',
          );
        }
        assert.equal(rows.rows.get(key)?.server?.name, `s${winner}`);
      }),
    );
  });

  test('another epoch refuses, though the version fits', () => {
    fc.assert(
      fc.property(metadataRow, (row) => {
        const rows = new Rows();
        const key = keyOfRow(row);
        rows.commit(commitOfRow('create', event, key, undefined, row));
        const now = rows.rows.get(key) as MetadataRow;
        const late = { ...now, epoch: now.epoch + 1 };
        assert.equal(rows.commit(commitOfRow('late', event, key, late, late)), 'refused');
      }),
    );
  });

  test('a deletion is done when the row is gone', () => {
    fc.assert(
      fc.property(metadataRow, (row) => {
        const rows = new Rows();
        const key = keyOfRow(row);
        rows.commit(commitOfRow('create', event, key, undefined, row));
        const deletion = commitOfRow('delete', event, key, rows.rows.get(key), undefined);
        assert.equal(rows.commit(deletion), 'apply');
        assert.equal(rows.rows.size, 0);
        assert.equal(rows.commit(deletion), 'done');
      }),
    );
  });

  test('a split leaves both parts the newest time that a server gave, a merge the newer of two', () => {
    const row = {
      tableId: '0000002a',
      server: undefined,
      epoch: 1,
      version: 1,
      commitId: '',
      files: {},
      redo: { epoch: 0, sequence: 0 },
      logs: [],
    };
    const [low, high] = [
      { ...row, range: { start: '', end: 'm' } },
      { ...row, range: { start: 'm', end: undefined } },
    ] as const;
    const timesOf = ({ rows }: ReturnType<typeof commitOfMerge>): (number | undefined)[] =>
      rows.map((one) => one.row?.lastServerMicros);
    const whole = { ...row, range: { start: '', end: undefined }, lastServerMicros: 3 };
    assert.deepEqual(
      timesOf(
        commitOfSplit('split', 0, whole, [
          { ...low, lastServerMicros: 5 },
          { ...high, lastServerMicros: 5 },
        ]),
      ),
      [5, 5],
    );
    for (const [a, b, newer] of [
      [1, 2, 2],
      [2, 1, 2],
      [undefined, 1, 1],
      [1, undefined, 1],
      [0, undefined, 0],
    ]) {
      assert.deepEqual(
        timesOf(commitOfMerge('merge', 0, { ...low, lastServerMicros: a }, { ...high, lastServerMicros: b })),
        [undefined, newer],
      );
    }
  });

  test('two rows change together or not at all', () => {
    fc.assert(
      fc.property(metadataRow, fc.boolean(), (row, stale) => {
        const rows = new Rows();
        const upper = { ...row, range: { start: 'a', end: undefined } };
        const lower = { ...row, range: { start: 'a', end: 'm' } };
        rows.commit(commitOfRow('create', event, keyOfRow(upper), undefined, upper));
        const now = rows.rows.get(keyOfRow(upper)) as MetadataRow;
        const insert = commitOfRow('split', event, keyOfRow(lower), undefined, lower);
        const shrink = commitOfRow(
          'split',
          event,
          keyOfRow(upper),
          stale ? { ...now, version: now.version + 5 } : now,
          { ...now, range: { start: 'm', end: undefined } },
        );
        const split = { id: 'split', event, rows: [...insert.rows, ...shrink.rows] };
        assert.equal(rows.commit(split), stale ? 'refused' : 'apply');
        assert.equal(rows.rows.size, stale ? 1 : 2);
        assert.equal(rows.commit(split), stale ? 'refused' : 'done');
      }),
    );
  });

  test('one that sets an epoch or a redo point back, or names the key of another tablet, is a bug', () => {
    fc.assert(
      fc.property(metadataRow, (row) => {
        const key = keyOfRow(row);
        const now = { ...row, epoch: 5, redo: { epoch: 5, sequence: 5 } };
        assert.throws(
          () => commitOfRow('id', event, `${key}x`, now, now),
          /a commit puts the row of a tablet under its own key/,
        );
        assert.throws(() => commitOfRow('id', event, key, now, { ...now, epoch: 4 }), /epoch of a tablet back/);
        for (const redo of [
          { epoch: 4, sequence: 9 },
          { epoch: 5, sequence: 4 },
        ]) {
          assert.throws(() => commitOfRow('id', event, key, now, { ...now, redo }), /redo point of a tablet back/);
        }
      }),
    );
  });
});
