import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RecoveryJudge } from '../../sim/world/recovery-judge.ts';
import type { SimProcess } from '../../sim/world/process.ts';
import { recordsOf } from '../../src/commitlog/index.ts';
import { keyOfRow, type MetadataRow } from '../../src/metadata/index.ts';
import { appendsOf } from './appends.ts';

const TABLE = '00000001';
const LOG = 'logs/one';
const ROW: MetadataRow = {
  tableId: TABLE,
  range: { start: '', end: 'm' },
  server: { name: 'one', address: 'a' },
  epoch: 1,
  version: 1,
  commitId: 'first',
  files: {},
  redo: { epoch: 0, sequence: 0 },
  logs: [LOG],
};
const KEY = keyOfRow(ROW);

/** A judge that has seen a tablet of the rows below m and records of rows a, b and z. */
async function judged(): Promise<{
  judge: RecoveryJudge;
  found: string[];
  sealed: Set<string>;
  failed: Set<string>;
  next: () => void;
}> {
  const sealed = new Set<string>();
  const failed = new Set<string>();
  const judge = new RecoveryJudge({
    isSealed: (log) => sealed.has(log),
    hasFailed: (log) => failed.has(log),
  });
  const found: string[] = [];
  judge.onViolation = (what) => found.push(what);
  judge.rowChanged(KEY, undefined, ROW);
  const appends = await appendsOf(LOG, TABLE, ['a', 'b', 'z', 'z']);
  for (const append of appends.slice(0, 3)) judge.appended(LOG, append.position, recordsOf(LOG, append), 0);
  const last = appends[3]!;
  return {
    judge,
    found,
    sealed,
    failed,
    next: () => judge.appended(LOG, last.position, recordsOf(LOG, last), last.position),
  };
}

/** The answer of a server that has released the tablet, or has not. */
function unloaded(judge: RecoveryJudge, failure: unknown): void {
  const message = { tablets: [{ key: KEY, epoch: 1 }], flush: true };
  judge.answered({ process: {} as SimProcess, method: 'unload', message, begunMs: 0 }, [failure]);
}

describe('the judge of recovery', () => {
  test('accepts a flush, a trim after it, a move and a recovery', async () => {
    const { judge, found, sealed, next } = await judged();
    const flushed = { ...ROW, version: 2, redo: { epoch: 1, sequence: 2 }, logs: [] };
    judge.rowChanged(KEY, ROW, flushed);
    next();
    unloaded(judge, undefined);
    const moved = { ...flushed, version: 3, epoch: 2, server: { name: 'two', address: 'b' }, logs: ['logs/two'] };
    judge.rowChanged(KEY, flushed, moved);
    sealed.add('logs/two');
    judge.rowChanged(KEY, moved, { ...moved, version: 4, epoch: 3, server: { name: 'three', address: 'c' } });
    judge.rowChanged(KEY, moved, undefined);
    assert.deepEqual(found, []);
  });

  test('finds a log that is taken from the row with a record of the tablet that is in no file', async () => {
    const { judge, found } = await judged();
    judge.rowChanged(KEY, ROW, { ...ROW, version: 2, redo: { epoch: 1, sequence: 1 }, logs: [] });
    assert.match(found[0]!, /record 2 of epoch 1 of the tablet of table 00000001 from "" is in logs\/one alone/);
  });

  test('a record whose append has failed for its writer may be lost', async () => {
    const { judge, found, failed } = await judged();
    failed.add(LOG);
    judge.rowChanged(KEY, ROW, { ...ROW, version: 2, redo: { epoch: 1, sequence: 1 }, logs: [] });
    assert.deepEqual(found, []);
  });

  test('finds a log that is trimmed before its records are in files', async () => {
    const { judge, found, next } = await judged();
    judge.rowChanged(KEY, ROW, { ...ROW, version: 2, redo: { epoch: 1, sequence: 1 } });
    next();
    assert.match(found[0]!, /logs\/one is trimmed before append \d+, and record 2 of epoch 1/);
  });

  test('finds a tablet that is taken from a server which has not released it and is not fenced', async () => {
    const { judge, found } = await judged();
    unloaded(judge, new Error('it is busy'));
    judge.rowChanged(KEY, ROW, { ...ROW, version: 2, epoch: 2, server: { name: 'two', address: 'b' } });
    assert.match(found[0]!, /is taken from a, which has not released it and is not fenced/);
  });

  test('finds a tablet that was released with a record that is in no file, and that lists the log still', async () => {
    const { judge, found } = await judged();
    unloaded(judge, undefined);
    judge.rowChanged(KEY, ROW, { ...ROW, version: 2, epoch: 2, server: { name: 'two', address: 'b' } });
    assert.match(found[0]!, /^a has released the tablet of table 00000001 from "", which lists its log still/);
    assert.match(
      found[1]!,
      /^a has released the tablet of table 00000001 from "", and record 1 of epoch 1 .* is in no file/,
    );
  });
});
