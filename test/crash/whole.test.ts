/** The findings of `edubba inspect check` on the order in which a tablet lists its files. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RowMutation } from '../../src/embedded/index.ts';
import { MemoryFileSystem, requestContext } from '../../src/env/index.ts';
import { checkDatabase } from '../../src/inspect/index.ts';
import { Locator, MetadataClient } from '../../src/locator/index.ts';
import { commitOfRow, keyOfRow, keysOfTable, type MetadataRow } from '../../src/metadata/index.ts';
import { readAllLockFiles } from '../../src/platform/index.ts';
import { type SimulatedDatabase, Simulation } from './simulation.ts';
import { assertWhole } from './whole.ts';

/** Two tablets, whose files lie in the order of `rows`, each flushed by itself, become one. */
async function merged(simulation: Simulation, rows: readonly string[]): Promise<SimulatedDatabase> {
  const simulated = await simulation.open(new MemoryFileSystem());
  const { opened, database } = simulated;
  const table = await database.createTable('t', { families: { f: {} }, splits: ['m'] });
  for (const row of rows) {
    await table.apply(new RowMutation(row).set('f:q', 'value'));
    await opened.flush();
  }
  await opened.mergeTablets(table.fullName, 'm');
  return simulated;
}

test('a tablet just merged lists files of two, each newest first, and the two in no order', async () => {
  const simulation = new Simulation();
  await simulation.run(
    (async () => {
      // the high part's file is the newer one, and stands after the low part's
      const { opened, database } = await merged(simulation, ['a', 'z']);
      await assertWhole(opened, 'after the merge');
      await database.close();
    })(),
  );
});

test('a file after an older one of the same former tablet is found, also among those of a merge', async () => {
  const simulation = new Simulation();
  await simulation.run(
    (async () => {
      const { opened, database } = await merged(simulation, ['a', 'z', 'b']);
      const { env } = opened;
      const metadata = new MetadataClient({ ...env, locator: new Locator(env), stopped: () => false });
      const context = requestContext({ budget: env.requestBudget });
      const listed: MetadataRow[] = [];
      for await (const rows of metadata.scan(keysOfTable('00000010'), context)) listed.push(...rows);
      const [row] = listed;
      assert.ok(row !== undefined && listed.length === 1);
      assert.equal(row.files['default']?.length, 3);
      const files = { default: [...(row.files['default'] as string[])].reverse() };
      const event = { kind: 'compacted', atMicros: env.clock.nowMicros() } as const;
      const [outcome] = await metadata.commit(
        [commitOfRow('reversed', event, keyOfRow(row), row, { ...row, files })],
        context,
      );
      assert.notEqual(outcome?.kind, 'refused');
      const { findings } = await checkDatabase({ ...env, readAllLockFiles: () => readAllLockFiles(env.fileSystem) });
      assert.deepEqual(
        findings.map(({ message }) => /is newer than the one before it/.test(message)),
        [true],
      );
      await database.close();
    })(),
  );
});
