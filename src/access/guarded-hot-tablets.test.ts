import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../base/index.ts';
import { ByteBudget, requestContext } from '../env/index.ts';
import type { HotTablet } from '../model/index.ts';
import type { Gate } from './gate.ts';
import { GuardedHotTablets } from './guarded-hot-tablets.ts';

const INSTANCE = 'projects/p/instances/i';
const context = requestContext({ budget: new ByteBudget(1024), principal: 'token:a' });
const hot = (table: string): HotTablet => ({
  id: table,
  table: `${INSTANCE}/tables/${table}`,
  range: { start: 'secret', end: undefined },
  startMicros: 0,
  endMicros: 1,
  cpuPercent: 50,
});

/** Hot tablets of the tables open, partial (some of its families may not be read) and closed. */
function guarded(isListed = true): GuardedHotTablets {
  const gate = {
    check: (_context: unknown, _call: string, permission: string, resource: string) => {
      assert.deepEqual([permission, resource], ['bigtable.hotTablets.list', INSTANCE]);
      if (!isListed) throw new BigtableError(Code.PERMISSION_DENIED, 'no');
    },
    rights: {
      allows: (_principal: string, permission: string, table: string) =>
        permission === 'bigtable.tables.sampleRowKeys' && !table.endsWith('/closed'),
      readsAll: (_principal: string, table: string) => !table.endsWith('/partial'),
    },
  } as unknown as Gate;
  const tables = { listHotTablets: async () => [hot('open'), hot('partial'), hot('closed')] };
  return new GuardedHotTablets(tables, gate);
}

describe('hot tablets', () => {
  const list = (tablets: GuardedHotTablets, cluster = `${INSTANCE}/clusters/c`) =>
    tablets.listHotTablets(context, cluster, { startMicros: 0, endMicros: 1 });

  test('of tables whose keys the caller may not know are listed without them', async () => {
    assert.deepEqual(await list(guarded()), [
      hot('open'),
      { ...hot('partial'), range: undefined },
      { ...hot('closed'), range: undefined },
    ]);
  });

  test('are not listed without the permission on their instance', async () => {
    const refused = (code: number) => (error: unknown) => error instanceof BigtableError && error.code === code;
    await assert.rejects(list(guarded(false)), refused(Code.PERMISSION_DENIED));
    await assert.rejects(list(guarded(), INSTANCE), refused(Code.INVALID_ARGUMENT));
  });
});
