/** What `edubba inspect check` says of databases in which nothing is wrong. */
import { test } from 'node:test';
import { RowMutation } from '../../src/embedded/index.ts';
import { MemoryFileSystem } from '../../src/env/index.ts';
import { Simulation } from './simulation.ts';
import { assertWhole } from './whole.ts';

test('a tablet just merged lists files of two, each newest first, and the two in no order', async () => {
  const simulation = new Simulation();
  await simulation.run((async () => {
    const { opened, database } = await simulation.open(new MemoryFileSystem());
    const table = await database.createTable('t', { families: { f: {} }, splits: ['m'] });
    // the high part's file is the newer one, and stands behind the low part's
    for (const row of ['a', 'z']) {
      await table.apply(new RowMutation(row).set('f:q', 'value'));
      await opened.flush();
    }
    await opened.mergeTablets(table.fullName, 'm');
    await assertWhole(opened, 'behind the merge');
    await database.close();
  })());
});
