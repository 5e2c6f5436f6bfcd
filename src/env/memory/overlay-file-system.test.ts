import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Code } from '../../base/index.ts';
import { MemoryFileSystem } from './memory-file-system.ts';
import { OverlayFileSystem } from './overlay-file-system.ts';

const text = async (fs: OverlayFileSystem | MemoryFileSystem, path: string): Promise<string> =>
  String(await fs.read(path, 0, await fs.size(path)));

async function write(fs: OverlayFileSystem | MemoryFileSystem, path: string, what: string): Promise<void> {
  const writer = await fs.create(path);
  await writer.append(Buffer.from(what));
  await writer.close();
}

async function logOf(fs: OverlayFileSystem | MemoryFileSystem, path: string): Promise<string[]> {
  const appends: string[] = [];
  for await (const { bytes } of fs.readLog(path)) appends.push(String(bytes));
  return appends;
}

describe('overlay file system', () => {
  test('files below are read, hidden by a deletion, and never changed', async () => {
    const below = new MemoryFileSystem();
    for (const name of ['a', 'c']) await write(below, name, `below ${name}`);
    const log = await below.openLog('logs/1');
    await log.append([Buffer.from('one')]);
    await log.close();
    const before = below.counts;
    const overlay = new OverlayFileSystem(below);
    await write(overlay, 'b', 'above b');
    assert.deepEqual(
      (await overlay.list('')).map(({ path }) => path),
      ['a', 'b', 'c'],
    );
    assert.deepEqual([await text(overlay, 'a'), await text(overlay, 'b')], ['below a', 'above b']);
    await assert.rejects(overlay.create('a'), { code: Code.ALREADY_EXISTS });
    await assert.rejects(overlay.openLog('logs/1'), { code: Code.ALREADY_EXISTS });
    await overlay.fence('logs/1');
    assert.deepEqual(await logOf(overlay, 'logs/1'), ['one']);
    const own = await overlay.openLog('logs/2');
    await own.append([Buffer.from('two')]);
    assert.deepEqual(await overlay.listLogs('logs/'), ['logs/1', 'logs/2']);
    await overlay.fence('logs/2');
    await assert.rejects(own.append([Buffer.from('late')]), { code: Code.FAILED_PRECONDITION });
    for (const path of ['a', 'b']) await overlay.delete(path);
    for (const path of ['logs/1', 'logs/2']) await overlay.deleteLog(path);
    assert.deepEqual([(await overlay.list('')).map(({ path }) => path), await overlay.listLogs('')], [['c'], []]);
    assert.deepEqual(await logOf(overlay, 'logs/1'), []);
    for (const path of ['a', 'b']) await assert.rejects(overlay.size(path), { code: Code.NOT_FOUND });
    assert.equal(overlay.readNow('a', 0, 1), undefined);
    // deleted here or not: it exists below
    await assert.rejects(overlay.create('a'), { code: Code.ALREADY_EXISTS });
    assert.deepEqual(
      [await text(below, 'a'), await logOf(below, 'logs/1'), below.counts],
      ['below a', ['one'], before],
    );
  });
});
