/** Deletions of tables by the library: what is kept for a table goes with it. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openDatabase } from '../boot/index.ts';
import { listFiles, requestContext } from '../env/index.ts';
import { DEFAULT_PARENT } from '../model/index.ts';
import { open } from './index.ts';

test('a table that is deleted takes along what was kept for it, and brings it back when it is restored', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-deletion-'));
  const table = `${DEFAULT_PARENT}/tables/t`;
  const inside = async <T>(work: (opened: Awaited<ReturnType<typeof openDatabase>>) => Promise<T>): Promise<T> => {
    const opened = await openDatabase({ directory });
    try {
      return await work(opened);
    } finally {
      await opened.close();
    }
  };
  const kept = (): Promise<string[]> =>
    inside(async ({ env }) =>
      ['resources/', 'policies/']
        .map((prefix) => listFiles(env.lockService, prefix))
        .reduce(
          async (all, files) => [...(await all), ...(await files).map(({ path }) => path)],
          Promise.resolve<string[]>([]),
        ),
    );
  try {
    for (const keepDeletedMs of [0, 60_000]) {
      await inside(async ({ service, env }) => {
        const context = requestContext({ budget: env.requestBudget });
        const families = [{ name: 'f' }];
        await service.createTable(context, {
          name: table,
          families,
          splits: [],
          granularity: 'micros',
          deletionProtection: false,
        });
        await service.resources!.create(context, 'schemaBundles', `${table}/schemaBundles/b`, Buffer.from('bundle'));
        const bindings = [{ role: 'roles/bigtable.reader', members: ['allUsers'] }];
        await service.policies!.setPolicy(context, `${table}/columnFamilies/f`, { bindings });
      });
      assert.equal((await kept()).length, 2);
      const database = await open(directory, { keepDeletedMs });
      await database.deleteTable('t');
      if (keepDeletedMs > 0) await database.undeleteTable('t');
      await database.close();
      assert.equal((await kept()).length, keepDeletedMs === 0 ? 0 : 2);
    }
  } finally {
    await rm(directory, { recursive: true });
  }
});
