/** Backups by the library: in this process, through a server, and in a database that is open for reading only. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { DOORS } from '../../test/library/doors.ts';
import { Code } from '../base/index.ts';
import { type Backup, open, RowMutation } from './index.ts';

const inDays = (days: number): Date => new Date(Date.now() + days * 86_400_000);
const microsOf = (date: Date): number => date.getTime() * 1000;

for (const door of DOORS) {
  describe(`backups: ${door.name}`, () => {
    test('are made, copied, listed, changed, restored and deleted', async () => {
      await using database = await door.open();
      const table = await database.createTable('t', { families: { f: { maxVersions: 2 } } });
      await table.apply(new RowMutation('r').set('f:q', 'before'));
      const made = await database.createBackup('t', 'b');
      assert.deepEqual([made.name, made.table, made.state, made.kind], ['b', 't', 'ready', 'standard']);
      const keptDays = (made.expireMicros - made.startMicros) / 86_400_000_000;
      assert.ok(keptDays > 29.9 && keptDays < 30.1, 'a month, unless it says otherwise');
      await table.apply(new RowMutation('r').set('f:q', 'after'));

      const restored = await database.restoreTable('b', 'u');
      assert.equal((await restored.get('r'))?.get('f:q')?.text, 'before');
      assert.deepEqual((await restored.schema()).families['f']?.gcRule, { kind: 'maxVersions', versions: 2 });

      const expires = inDays(5);
      const copy = await database.copyBackup('b', 'copy', { expires });
      assert.deepEqual([copy.sourceBackup, copy.expireMicros], ['b', microsOf(expires)]);
      const hot = await database.createBackup('u', 'hot', { kind: 'hot', hotToStandard: inDays(2), expires });
      assert.equal(hot.kind, 'hot');
      assert.deepEqual(await database.getBackup('hot'), hot);
      assert.deepEqual(
        (await database.listBackups()).map(({ name }) => name),
        ['b', 'copy', 'hot'],
      );
      const changed = await database.updateBackup('hot', { expires: inDays(8), hotToStandard: null });
      assert.equal(changed.hotToStandardMicros, undefined);
      assert.ok(changed.expireMicros > hot.expireMicros);
      await database.deleteBackup('b');
      await database.deleteBackup(`${table.fullName.replace('/tables/t', '')}/clusters/edubba/backups/hot`);
      const [last, ...others] = (await database.listBackups()) as Backup[];
      assert.deepEqual([others, last?.name], [[], 'copy']);
    });

    test('say in the words of their caller what is wrong', async () => {
      await using database = await door.open();
      await database.createTable('t');
      await database.createBackup('t', 'b');
      for (const [call, code, message] of [
        [() => database.createBackup('t', 'b'), Code.ALREADY_EXISTS, /^backup b exists already$/],
        [() => database.createBackup('none', 'c'), Code.NOT_FOUND, /^table none does not exist$/],
        [() => database.createBackup('t', 'c', { expires: inDays(91) }), Code.INVALID_ARGUMENT, /90 days/],
        [
          () => database.createBackup('t', 'c', { expires: Date.now() }),
          Code.INVALID_ARGUMENT,
          /expires must be micro/,
        ],
        [
          () => database.createBackup('t', 'c', { kind: 'cold' as 'hot' }),
          Code.INVALID_ARGUMENT,
          /kind must be one of/,
        ],
        [() => database.copyBackup('none', 'c'), Code.NOT_FOUND, /^backup none does not exist$/],
        [() => database.updateBackup('b', {}), Code.INVALID_ARGUMENT, /expires or hotToStandard/],
        [() => database.updateBackup('b', { hotToStandard: inDays(2) }), Code.INVALID_ARGUMENT, /only a hot backup/],
        [() => database.restoreTable('b', 't'), Code.ALREADY_EXISTS, /^table t exists already$/],
        [() => database.restoreTable('', 'u'), Code.INVALID_ARGUMENT, /a backup name must not be empty/],
        [() => database.createBackup('t', 'c', { timeoutMs: 0 }), Code.DEADLINE_EXCEEDED, /timeoutMs/],
      ] as const)
        await assert.rejects(call(), { code, message });
      assert.equal((await database.listBackups()).length, 1);
    });
  });
}

test('a database that is open for reading only shows its backups, and makes none', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-backups-'));
  try {
    const writer = await open(directory);
    await writer.createTable('t');
    const made = await writer.createBackup('t', 'b');
    await writer.close();
    await using reader = await open(directory, { readOnly: true });
    assert.deepEqual(await reader.listBackups(), [made]);
    assert.deepEqual(await reader.getBackup('b'), made);
    for (const call of [
      () => reader.createBackup('t', 'c'),
      () => reader.updateBackup('b', { expires: inDays(9) }),
      () => reader.deleteBackup('b'),
      () => reader.restoreTable('b', 'u'),
    ])
      await assert.rejects(call(), { code: Code.FAILED_PRECONDITION, message: /read-only/ });
  } finally {
    await rm(directory, { recursive: true });
  }
});

test('what is written to a restored table is newer than what it began with, over compactions and openings', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-backups-'));
  try {
    for (let opening = 0; opening < 5; opening++) {
      await using database = await open(directory);
      const table = await database.openTable('t', { families: { f: {} } });
      for (const row of ['r', 's']) await table.apply(new RowMutation(row).set('f:q', 'old', 1000n).set('f:p', 'old'));
    }
    const check = async (): Promise<void> => {
      await using database = await open(directory);
      const rows = await database.table('u').scan({ versions: 'all' }).toArray();
      const shown = rows.map((row) => row.cells.map(({ column, text }) => `${row.key} ${column} ${text}`));
      assert.deepEqual(shown, [['r f:p new', 'r f:q new']]);
    };
    const database = await open(directory);
    await database.createBackup('t', 'b');
    const table = await database.restoreTable('b', 'u');
    await table.apply(new RowMutation('r').delete('f:p').set('f:q', 'new', 1000n));
    await table.apply(new RowMutation('r').set('f:p', 'new'));
    await table.deleteRow('s');
    await database.flush();
    await database.close();
    await check();
    await check();
    const again = await open(directory);
    await again.flush();
    await again.compact('u');
    await again.close();
    await check();
  } finally {
    await rm(directory, { recursive: true });
  }
});
