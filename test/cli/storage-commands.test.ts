/**
 * Commands of operators: tablets, compactions, flushes and counters, on a directory, on a server, and on a server that
 * wants a token.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { openDatabase } from '../../src/boot/index.ts';
import { startServer } from '../../src/server/index.ts';
import { documents, edubba, output, temporaryDirectory } from './run.ts';
import { TARGETS } from './targets.ts';

interface Tablet {
  readonly start: string;
  readonly end?: string;
  readonly events: readonly { readonly kind: string; readonly epoch: number }[];
}

for (const [name, make] of Object.entries(TARGETS)) {
  describe(`storage commands on ${name}`, () => {
    test('the changes of a table are kept and printed', async (t) => {
      const { words, close } = await make(t);
      const since = String(Date.now() * 1000);
      await output([...words, 'createtable', 't', 'families=f:maxversions=1', 'splits=m']);
      assert.match((await edubba([...words, 'changes', 't'])).err, /FAILED_PRECONDITION.*has no change stream/);
      await output([...words, 'keepchanges', 't', '7']);
      await output([...words, 'set', 't', 'a', 'f:q=1@1000']);
      await output([...words, 'set', 't', 'a', 'f:q=2@2000']);
      await output([...words, 'compact', 't']);
      await output([...words, 'deletecolumn', 't', 'x', 'f', 'q']);
      const printed = documents(await output([...words, 'changes', 't', '--from', since, '--once', '--json']));
      const ofRow = (row: string) => printed.filter((one) => one['row'] === row);
      assert.deepEqual(
        ofRow('a').map(({ origin }) => origin),
        ['user', 'user', 'garbageCollection'],
      );
      assert.equal(ofRow('x').length, 1);
      assert.deepEqual(ofRow('a')[0]!['mutations'], [
        { kind: 'set', family: 'f', qualifier: 'q', timestamp: '1000', value: '1' },
      ]);
      const { token } = printed.at(-1) as unknown as { readonly token: string };
      assert.equal(await output([...words, 'changes', 't', '--token', token, '--once']), '');
      await output([...words, 'set', 't', 'b', 'f:q=3@3000']);
      assert.match(
        await output([...words, 'changes', 't', '--token', token, '--once']),
        /^\S+ {2}b {2}set f:q @ \S+ "3"\n$/,
      );
      const text = await output([...words, 'changes', 't', '--from', since, '--once']);
      assert.match(text, /^\S+ {2}a {2}\(gc\) delete f:q before 1970\/01\/01-00:00:00.001001$/m);
      for (const wrong of [['--once'], ['--from', 'soon'], ['--from', since, '--token', token]])
        assert.equal((await edubba([...words, 'changes', 't', ...wrong])).status, 2);
      assert.equal((await edubba([...words, 'keepchanges', 't', '8'])).status, 2);
      await output([...words, 'keepchanges', 't', 'never']);
      assert.match((await edubba([...words, 'changes', 't'])).err, /FAILED_PRECONDITION/);
      await close();
    });

    test('tablets are split, listed, compacted, flushed and merged', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 't', 'families=f:never']);
      for (const row of ['a', 'z']) await output([...words, 'set', 't', row, 'f:q=value']);
      await output([...words, 'split', 't', 'k']);
      const tablets = documents(await output([...words, 'tablets', 't', '--json']));
      assert.deepEqual(
        tablets.map(({ start, end }) => [start, end]),
        [
          ['', 'k'],
          ['k', undefined],
        ],
      );
      const listed = (await output([...words, 'tablets', 't'])).split('\n');
      assert.match(listed[0] as string, /^First row +Up to +Server +Files +Bytes in files +Bytes in memory$/);
      assert.match(listed[1] as string, /^- +"k" +\S+ +\d+ +\d+ +\d+$/);
      assert.match(listed[2] as string, /^"k" +- +\S+ +\d+ +\d+ +\d+$/);
      await output([...words, 'flush']);
      await output([...words, 'compact', 't']);
      await output([...words, 'compact']);
      for (const { files } of documents(await output([...words, 'tablets', 't', '--json'])))
        assert.ok((files as number) > 0);
      const [usage] = JSON.parse(await output([...words, 'stats', 't', '--json'])) as [{ cells: number }];
      assert.equal(usage.cells, 2);
      await output([...words, 'merge', 't', 'k']);
      assert.equal(documents(await output([...words, 'tablets', 't', '--json'])).length, 1);
      const [counters] = documents(await output([...words, 'counters', '--json']));
      assert.ok(Object.values(counters ?? {}).every((count) => typeof count === 'number'));
      assert.match(await output([...words, 'counters']), /^\S+ +\d+$/m);
      assert.match((await edubba([...words, 'tablets', 'none'])).err, /NOT_FOUND/);
      const [merged] = documents(await output([...words, 'tablet', 'events', 't', '--json'])) as unknown as [Tablet];
      assert.deepEqual([merged.start, merged.end], ['', undefined]);
      const kinds = merged.events.map(({ kind }) => kind);
      for (const kind of ['merged', 'assigned', 'compacted']) assert.ok(kinds.includes(kind), `${kind}: ${kinds}`);
      const epochs = merged.events.map(({ epoch }) => epoch);
      assert.deepEqual(
        epochs,
        epochs.toSorted((a, b) => b - a),
        'the newest comes first',
      );
      const events = (await output([...words, 'tablet', 'events', 't'])).split('\n');
      assert.match(events[0] as string, /^First row +Time +Event +Epoch +Server$/);
      assert.match(events[1] as string, /^- +\d{4}\/\d\d\/\d\d-[\d:.]+ +[a-z]+ +\d+ +\S+$/);
      assert.match((await edubba([...words, 'tablet', 'events', 'none'])).err, /NOT_FOUND/);
      await close();
    });

    test('ls shows the tables of all instances, and of one where it is named', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 'mine', 'families=f:never']);
      await output([...words, '--project', 'p', '--instance', 'i', 'createtable', 'theirs', 'families=f:never']);
      const full = 'projects/p/instances/i/tables/theirs';
      assert.equal(await output([...words, 'ls']), `mine\n${full}\n`);
      assert.deepEqual(JSON.parse(await output([...words, 'ls', '--json'])), ['mine', full]);
      assert.equal(await output([...words, '--project', 'p', '--instance', 'i', 'ls']), 'theirs\n');
      assert.equal(await output([...words, '--project', 'local', 'ls']), 'mine\n');
      // a full name works wherever an id does
      await output([...words, 'deletetable', full]);
      await output([...words, 'deletetable', 'mine']);
      assert.deepEqual(await edubba([...words, 'ls']), { status: 0, out: '', err: 'no tables\n' });
      await close();
    });
  });
}

test('a server that wants tokens wants them for storage commands too', async (t) => {
  const tokens = join(await temporaryDirectory(t), 'tokens.txt');
  const token = (await output(['token', 'add', tokens, 'operator'])).trim();
  const { service, env, close } = await openDatabase({ memory: true });
  const server = await startServer({ service, env, address: '127.0.0.1:0', access: { tokensFile: tokens } });
  t.after(() => server.close().then(close));
  const words = ['--address', server.address];
  const environment = { EDUBBA_TOKEN: token };
  await output([...words, 'createtable', 't', 'families=f:never', 'splits=k'], environment);
  const commands = [
    ['stats', 't'],
    ['tablets', 't'],
    ['tablet', 'events', 't'],
    ['flush'],
    ['counters'],
    ['compact'],
    ['compact', 't'],
    ['merge', 't', 'k'],
    ['ls'],
  ];
  for (const command of commands) {
    const refused = await edubba([...words, ...command]);
    assert.deepEqual([refused.status, refused.out], [1, ''], command.join(' '));
    assert.match(refused.err, /^edubba: UNAUTHENTICATED: the call has no bearer token/);
    await output([...words, ...command], environment);
  }
  assert.match((await edubba([...words, 'split', 't', 'c'])).err, /UNAUTHENTICATED/);
});
