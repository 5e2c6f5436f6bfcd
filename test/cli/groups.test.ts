/**
 * Locality groups, compactions, splits and merges from the command line, on a directory; over a server all are refused
 * in words.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { openDatabase } from '../../src/boot/index.ts';
import { startServer } from '../../src/server/index.ts';
import { edubba, output, temporaryDirectory } from './run.ts';

test('groups are set, shown and carried out; a compaction leaves one file for each', async (t) => {
  const directory = join(await temporaryDirectory(t), 'data');
  const words = ['--dir', directory];
  await output([...words, 'createtable', 'web', 'families=contents:never,language:never,anchor:never']);
  await output([...words, 'set', 'web', 'com.cnn', 'contents:=<html>', 'language:=en', 'anchor:x=CNN']);
  await output([
    ...words,
    'setgroups',
    'web',
    'meta=language,anchor:inmemory=true:bloom=row-column',
    'default=:compression=zstd/9',
  ]);
  await output([...words, 'compact', 'web']);
  assert.match(await output([...words, 'read', 'web']), /"CNN"[\s\S]*"<html>"[\s\S]*"en"/);
  assert.match(
    await output([...words, 'ls', 'web']),
    /^meta\s+anchor,language \{"bloomFilter":"row-column","inMemory":true\}$/m,
  );
  const families = JSON.parse(await output([...words, '--json', 'ls', 'web'])) as {
    name: string;
    group?: string;
    tuning?: object;
  }[];
  assert.deepEqual(
    families.map(({ name, group }) => [name, group]),
    [
      ['anchor', 'meta'],
      ['contents', undefined],
      ['language', 'meta'],
    ],
  );
  assert.deepEqual(families[1]?.tuning, { compression: { kind: 'zstd', level: 9 } });
  assert.match(
    await output(['inspect', 'metadata', directory]),
    /tables\/web,[\s\S]*default: sstables\/\S+ \(newest first\)\s+meta: sstables\/\S+ \(newest first\)/,
  );
  const wrong = await edubba([...words, 'setgroups', 'web', 'meta=nobody']);
  assert.deepEqual([wrong.status, wrong.err.split(':')[1]], [1, ' NOT_FOUND']);
  assert.match(
    (await edubba([...words, 'setgroups', 'web', 'meta=anchor:bloom=all'])).err,
    /bloomFilter must be one of none, row, row-column, not all/,
  );
  assert.match((await edubba([...words, 'compact', 'nothing'])).err, /NOT_FOUND/);
});

test('a tablet is split before a row and near its middle, and two become one', async (t) => {
  const directory = join(await temporaryDirectory(t), 'data');
  const words = ['--dir', directory];
  const rows = ['a', 'd', 'g', 'k', 'p', 'x'];
  const tablets = async (): Promise<string[]> =>
    [...(await output(['inspect', 'metadata', directory])).matchAll(/tables\/t, (rows from .*)$/gm)].map(
      ([, range = '']) => range,
    );
  await output([...words, 'createtable', 't', 'families=f:never']);
  for (const row of rows) await output([...words, 'set', 't', row, `f:q=${row}`]);
  await output([...words, 'split', 't', 'k']);
  assert.deepEqual(await tablets(), ['rows from the first to "k"', 'rows from "k" to the last']);
  const noMeeting = await edubba([...words, 'merge', 't', 'd']);
  assert.deepEqual([noMeeting.status, noMeeting.err.split(':')[1]], [1, ' FAILED_PRECONDITION']);
  await output([...words, 'merge', 't', 'k']);
  assert.deepEqual(await tablets(), ['rows from the first to the last']);
  await output([...words, 'split', 't']);
  assert.equal((await tablets()).length, 2);
  assert.equal((await output([...words, 'count', 't'])).trim(), String(rows.length));
  assert.match((await edubba([...words, 'split', 'nothing', 'k'])).err, /NOT_FOUND/);
});

test('a running server compacts, splits and merges too; groups are set where the directory is', async () => {
  const { service, env, close } = await openDatabase({ memory: true });
  const server = await startServer({ service, env, address: '127.0.0.1:0' });
  try {
    const words = ['--address', server.address];
    await output([...words, 'createtable', 't', 'families=f:never']);
    assert.match(
      (await edubba([...words, 'setgroups', 't', 'x=f'])).err,
      /UNIMPLEMENTED: locality groups cannot be set over the Cloud API/,
    );
    await output([...words, 'set', 't', 'a', 'f:q=x']);
    await output([...words, 'set', 't', 'z', 'f:q=x']);
    await output([...words, 'split', 't', 'k']);
    await output([...words, 'compact', 't']);
    assert.match(await output([...words, 'stats', 't']), /^Family .*\nf +2 /);
    await output([...words, 'merge', 't', 'k']);
    assert.match((await edubba([...words, 'merge', 't', 'k'])).err, /FAILED_PRECONDITION: no two tablets/);
    assert.match((await edubba([...words, 'compact', 'none'])).err, /NOT_FOUND/);
  } finally {
    await server.close();
    await close();
  }
});
