import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { losingAnswers } from '../../test/contracts/lost-answers.ts';
import { quickClock } from '../../test/simulated-time.ts';
import { listFiles, type LockService, MemoryLockService } from '../env/index.ts';
import { keptFilePath } from '../metadata/index.ts';
import { forgetFiles, keepFiles, type KeptFilesParts, returnFiles } from './kept-files.ts';
import { encodePolicy, policyPath } from './policy-file.ts';
import { encodeResource, resourcePath } from './resource-file.ts';

const TABLE = 'projects/p/instances/i/tables/t';
const OLD = '00000010';
const NEW = '00000011';
const VIEW = `${TABLE}/authorizedViews/v`;
const BUNDLE = `${TABLE}/schemaBundles/b`;

const policy = (owner: string, member: string): Buffer =>
  encodePolicy({ owner, bindings: [{ role: 'roles/bigtable.reader', members: [member] }], write: member });
const resource = (owner: string, name: string, text: string): Buffer =>
  encodeResource({ name, owner, contents: Buffer.from(text), write: text });

/** The files of a table with that id, by path. */
const filesOf = (id: string, text: string): ReadonlyMap<string, Buffer> =>
  new Map([
    [policyPath(TABLE), policy(id, text)],
    [policyPath(`${TABLE}/columnFamilies/f`), policy(`${id}/2`, text)],
    [policyPath(VIEW), policy(id, text)],
    [resourcePath('authorizedViews', VIEW), resource(id, VIEW, text)],
    [resourcePath('schemaBundles', BUNDLE), resource(id, BUNDLE, text)],
  ]);

/** Files of others: of a table whose name begins the same way, and of the instance. */
const OTHERS: ReadonlyMap<string, Buffer> = new Map([
  [policyPath(`${TABLE}2`), policy('00000020', 'other')],
  [policyPath('projects/p/instances/i'), policy('', 'other')],
  [resourcePath('authorizedViews', `${TABLE}2/authorizedViews/v`), resource('00000020', `${TABLE}2/v`, 'other')],
]);

async function setUp(seen: (lockService: LockService) => LockService = (lockService) => lockService) {
  const lockService = new MemoryLockService();
  const lock = await lockService.tryAcquire('master', await lockService.openSession());
  assert.ok(lock);
  const parts: KeptFilesParts = { lockService: seen(lockService), clock: quickClock(), lock };
  const write = async (files: ReadonlyMap<string, Buffer>): Promise<void> => {
    for (const [path, contents] of files) await lockService.write(path, contents);
  };
  const all = async (prefix = ''): Promise<ReadonlyMap<string, string>> =>
    new Map(
      (await listFiles(lockService, prefix)).map(({ path, contents }) => [path, Buffer.from(contents).toString()]),
    );
  await write(OTHERS);
  return { lockService, parts, write, all };
}

const texts = (...parts: ReadonlyMap<string, Buffer>[]): ReadonlyMap<string, string> =>
  new Map(
    parts
      .flatMap((part) => [...part])
      .map(([path, contents]): [string, string] => [path, contents.toString()])
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );

describe('the files of a deleted table', () => {
  for (const [name, loses] of [
    ['', false],
    [', though answers are lost', true],
  ] as const)
    test(`lie apart, and come back, and those of a later table do not stay${name}`, async () => {
      const { parts, write, all } = await setUp((lockService) =>
        loses
          ? losingAnswers(lockService, (_, method) => method === 'write' || method === 'remove').service
          : lockService,
      );
      await write(filesOf(OLD, 'old'));
      await keepFiles(parts, TABLE, OLD);
      assert.equal((await all(keptFilePath(OLD))).size, 5);
      assert.deepEqual(new Map([...(await all())].filter(([path]) => !path.startsWith('kept/'))), texts(OTHERS));
      await write(filesOf(NEW, 'new'));
      await write(new Map([[policyPath(`${TABLE}/columnFamilies/g`), policy(`${NEW}/0`, 'new')]]));
      // a later master does not know that the files lie apart
      await keepFiles(parts, TABLE, OLD);
      assert.equal((await all(policyPath(`${TABLE}/`))).size, 3, 'the files of another table stay');
      const paths = await returnFiles(parts, TABLE, OLD);
      assert.ok(paths.length >= 5);
      await forgetFiles(parts, OLD);
      assert.deepEqual(await all(), texts(filesOf(OLD, 'old'), OTHERS));
    });

  test('that cannot be read stay where they are: they close what they are of', async () => {
    const { parts, write, all } = await setUp();
    const damaged = new Map([[policyPath(TABLE), Buffer.from('{"format":1')]]);
    await write(damaged);
    await keepFiles(parts, TABLE, OLD);
    await returnFiles(parts, TABLE, OLD);
    assert.deepEqual(await all(), texts(damaged, OTHERS));
  });

  test('that were written after the deletion are not replaced by earlier ones', async () => {
    const { parts, write, all } = await setUp();
    await write(filesOf(OLD, 'old'));
    await keepFiles(parts, TABLE, OLD);
    const late = new Map([[policyPath(TABLE), policy(OLD, 'late')]]);
    await write(late);
    await returnFiles(parts, TABLE, OLD);
    await forgetFiles(parts, OLD);
    assert.deepEqual(await all(), texts(new Map([...filesOf(OLD, 'old'), ...late]), OTHERS));
  });

  test('are not touched by a master that has lost its lock', async () => {
    const { lockService, parts, write, all } = await setUp();
    await write(filesOf(OLD, 'old'));
    await lockService.release(parts.lock);
    for (const change of [keepFiles(parts, TABLE, OLD), returnFiles(parts, TABLE, NEW)]) await assert.rejects(change);
    assert.deepEqual(await all(), texts(filesOf(OLD, 'old'), OTHERS));
  });
});
