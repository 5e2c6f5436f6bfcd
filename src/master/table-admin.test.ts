import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ByteBudget,
  type Env,
  type Guard,
  ManualClock,
  MemoryLockService,
  requestContext,
  silentLogger,
} from '../env/index.ts';
import { SchemaCache } from '../locator/index.ts';
import { deletionPath, encodeSchema, schemaPath } from '../metadata/index.ts';
import type { Assignment } from './assignment.ts';
import type { AssignmentQueue } from './assignment-queue.ts';
import { Creations } from './creations.ts';
import { Deletions } from './deletions.ts';
import type { Servers } from './servers.ts';
import { TableAdmin } from './table-admin.ts';
import type { KeptTables } from './kept-tables.ts';
import { TableIds } from './table-ids.ts';

const id = '00000010';
const context = requestContext({ budget: new ByteBudget(1024) });

/** Records for each schema that is removed if the mark of its deletion existed. */
class MarkedRemovals extends MemoryLockService {
  readonly withMark: boolean[] = [];

  override async remove(path: string, guard?: Guard): Promise<boolean> {
    if (path === schemaPath('t')) this.withMark.push((await this.read(deletionPath(id))) !== undefined);
    return super.remove(path, guard);
  }
}

test('a second attempt of a deletion keeps its mark while the failed first one is finished', async () => {
  for (let steps = 0; steps < 30; steps++) {
    const lockService = new MarkedRemovals();
    const lock = await lockService.tryAcquire('master', await lockService.openSession());
    assert.ok(lock);
    const schema = { name: 't', id, granularity: 'micros', families: {}, deletionProtection: false } as const;
    await lockService.write(schemaPath('t'), encodeSchema(schema));
    const env = { lockService, clock: new ManualClock(), logger: silentLogger } as unknown as Env;
    const schemas = new SchemaCache(env, (error) => assert.fail(String(error)));
    await schemas.start();
    // the master that made the mark could not remove the schema
    const deletions = new Deletions(env, lock);
    await deletions.begin(id, 't');
    const tables = new TableAdmin({
      env,
      lock,
      schemas,
      deletions,
      creations: new Creations(),
      servers: { confirm: async () => {} } as unknown as Servers,
      assignment: { removeAllRows: async () => {} } as unknown as Assignment,
      queue: {} as unknown as AssignmentQueue,
      ids: new TableIds(lockService, lock),
      kept: {} as unknown as KeptTables,
      keepDeletedMs: 0,
      onRowsLeft: () => assert.fail('no row is left'),
    });
    const deleted = tables.deleteTable('t', false, context);
    for (let i = 0; i < steps; i++) await Promise.resolve();
    await Promise.all([deleted, tables.finishDeletions(context)]);
    assert.deepEqual(lockService.withMark, [true], `the first is ended ${steps} steps after`);
    assert.deepEqual([deletions.has(id), schemas.byName('t')], [false, undefined]);
    schemas.stop();
  }
});
