/** The commands that cbt has for cells, families and types, against a directory and against a server. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { main, type Terminal } from '../../src/cli/index.ts';
import { ManualClock, type Timer } from '../../src/env/index.ts';
import { documents, edubba, output } from './run.ts';
import { TARGETS } from './targets.ts';

interface CellDocument {
  readonly family: string;
  readonly qualifier: string;
  readonly timestamp: string;
  readonly value?: unknown;
  readonly valueBase64?: string;
}

for (const [name, make] of Object.entries(TARGETS)) {
  describe(`cbt's words on ${name}`, () => {
    const cellsOf = (text: string): readonly CellDocument[] =>
      (documents(text) as { cells: CellDocument[] }[]).flatMap(({ cells }) => cells);

    test('aggregates are made, added to, and shown as numbers', async (t) => {
      const { words, close } = await make(t);
      await output([
        ...words,
        'createtable',
        't',
        'families=sum:never:intsum,max:maxversions=2:intmax,seen:never:hll,plain:never',
      ]);
      await output([...words, 'createfamily', 't', 'least:never:intmin']);
      await output([...words, 'createfamily', 't', 'numbers:never:inthll']);
      await output([
        ...words,
        'addtocell',
        't',
        'r',
        'app-profile=any',
        'sum:q=5@0',
        'sum:q=7@0',
        'max:q=-3@0',
        'max:q=2@0',
        'least:q=9223372036854775807@0',
      ]);
      await output([...words, 'addtocell', 't', 'r', 'seen:q=somebody@0', 'numbers:q=12@0']);
      const cells = cellsOf(await output([...words, 'read', 't', '--json']));
      const numbers = cells.filter(({ value }) => value !== undefined).map(({ family, value }) => [family, value]);
      assert.deepEqual(numbers, [
        ['least', Number(2n ** 63n - 1n)],
        ['max', 2],
        ['sum', 12],
      ]);
      assert.deepEqual(
        cells.filter(({ valueBase64 }) => valueBase64 !== undefined).map(({ family }) => family),
        ['numbers', 'seen'],
      );
      const text = await output([...words, 'lookup', 't', 'r', 'columns=sum:,least:']);
      assert.match(
        text,
        /least:q +@ 1970\/01\/01-00:00:00.000000\n {4}9223372036854775807\n.*sum:q +@ 1970.*\n {4}12\n/,
      );
      const listed = await output([...words, 'ls', 't']);
      assert.match(listed, /^Family Name\tGC Policy\t\tValue Type\n/);
      for (const line of [
        'sum\t\t<never>\t\t\tintsum',
        'least\t\t<never>\t\t\tintmin',
        'max\t\tversions() > 2\t\tintmax',
        'seen\t\t<never>\t\t\thll',
        'numbers\t\t<never>\t\t\tinthll',
        'plain\t\t<never>\t\t\t',
      ]) {
        assert.ok(listed.includes(`\n${line}\n`), listed);
      }
      // without a timestamp each call has its own
      await output([...words, 'addtocell', 't', 'now', 'sum:q=1']);
      assert.match(await output([...words, 'lookup', 't', 'now']), /@ 20\d\d\//);
      const refusals: readonly (readonly [readonly string[], RegExp])[] = [
        [
          ['addtocell', 't', 'r', 'sum:q=many'],
          /INVALID_ARGUMENT: the value for sum:q must be a whole number within int64, not "many"/,
        ],
        [['addtocell', 't', 'r', 'sum:q=9223372036854775808'], /INVALID_ARGUMENT: .* within int64/],
        [['addtocell', 't', 'r', 'app-profile=x'], /INVALID_ARGUMENT: give at least one cell/],
        [['addtocell', 't', 'r', 'plain:q=5'], /plain/],
        [['addtocell', 't', 'r', 'gone:q=5'], /NOT_FOUND: .*gone/],
        [
          ['createtable', 'u', 'families=f:never:sum'],
          /INVALID_ARGUMENT: family "f": unknown type "sum"; known: intsum/,
        ],
        [['createtable', 'u', 'families=f:never:toString'], /unknown type "toString"/],
        [['createfamily', 't', 'f:never:intsum:more'], /must be written FAMILY, FAMILY:POLICY or FAMILY:POLICY:TYPE/],
      ];
      for (const [command, message] of refusals) {
        const { status, err } = await edubba([...words, ...command]);
        assert.equal(status, /^INVALID|written|unknown type/.test(message.source) ? 2 : 1, command.join(' '));
        assert.match(err, message);
      }
      await close();
    });

    test('a counter is incremented, printed, and shown as a number where the reader says so', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 't', 'families=f:never']);
      assert.equal(await output([...words, 'increment', 't', 'r', 'f:hits']), '1\n');
      assert.equal(await output([...words, 'increment', 't', 'r', 'f:hits=-5']), '-4\n');
      const [cell] = documents(await output([...words, 'increment', 't', 'r', 'f:hits=+9', '--json']));
      assert.deepEqual({ ...cell, timestamp: 0 }, { family: 'f', qualifier: 'hits', timestamp: 0, value: 5 });
      assert.equal(await output([...words, 'increment', 't', 'r', 'f:']), '1\n');
      await output([...words, 'set', 't', 'r', 'f:text=eightlet']);
      const read = await output([...words, 'read', 't', 'cells-per-column=1', 'int64=f:hits,f:none', '--json']);
      assert.deepEqual(
        cellsOf(read).map(({ qualifier, value }) => [qualifier, value]),
        [
          ['', '\0\0\0\0\0\0\0\x01'],
          ['hits', 5],
          ['text', 'eightlet'],
        ],
      );
      assert.match(
        await output([...words, 'lookup', 't', 'r', 'cells-per-column=1', 'int64=f:hits']),
        /f:hits .*\n {4}5\n/,
      );
      for (const [command, message] of [
        [['increment', 't', 'r', 'f'], /must be written family:column/],
        [['increment', 't', 'r', 'f:q=x'], /whole number within int64, not "x"/],
        [['increment', 't', 'r', 'f:q='], /not ""/],
        [['increment', 't', 'r', 'none:q'], /NOT_FOUND/],
        [['increment', 't', 'r', 'f:text2=1', 'more'], /too many arguments/],
        [['read', 't', 'int64=g:q'], /no family "g"/],
        [['read', 't', 'int64='], /has no value/],
      ] as const) {
        const { status, err } = await edubba([...words, ...command]);
        assert.notEqual(status, 0, command.join(' '));
        assert.match(err, message);
      }
      await close();
    });

    test('a column and a family are deleted, and nothing else', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 't', 'families=f:never,g:never']);
      await output([...words, 'set', 't', 'r', 'f:q=1@1000', 'f:q=2@2000', 'f:x=3@1000', 'f:=4@1000', 'g:q=5@1000']);
      await output([...words, 'set', 't', 's', 'f:q=6@1000']);
      await output([...words, 'deletecolumn', 't', 'r', 'f', 'q', 'app-profile=any']);
      const left = async (): Promise<unknown[]> =>
        cellsOf(await output([...words, 'read', 't', '--json'])).map(({ value }) => value);
      assert.deepEqual(await left(), ['4', '3', '5', '6']);
      await output([...words, 'deletecolumn', 't', 'r', 'f', '']);
      assert.deepEqual(await left(), ['3', '5', '6']);
      await output([...words, 'deletefamily', 't', 'f']);
      assert.deepEqual(await left(), ['5']);
      assert.match((await edubba([...words, 'deletefamily', 't', 'f'])).err, /NOT_FOUND/);
      assert.match((await edubba([...words, 'deletecolumn', 't', 'r', 'f', 'q'])).err, /NOT_FOUND/);
      assert.match(
        (await edubba([...words, 'deletecolumn', 't', 'r', 'g', 'q', 'prefix=x'])).err,
        /"prefix=x" is not known here/,
      );
      await close();
    });

    test('a type is set, replication is waited for, and keys cut the table', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 't', 'families=f:maxversions=3,g:never', 'splits=m']);
      await output([...words, 'setvaluetype', 't', 'f', 'stringutf8bytes']);
      assert.match(
        await output([...words, 'ls', 't']),
        /^f\t\tversions\(\) > 3\t\tstringutf8bytes\ng\t\t<never>\t\t\t$/m,
      );
      assert.match(
        (await edubba([...words, 'setvaluetype', 't', 'f', 'intsum'])).err,
        /only be set to stringutf8bytes, not to "intsum"/,
      );
      assert.equal(await output([...words, 'waitforreplication', 't']), '');
      assert.match((await edubba([...words, 'waitforreplication', 'none'])).err, /NOT_FOUND/);
      const samples = documents(await output([...words, 'samplekeys', 't', '--json']));
      assert.deepEqual(
        samples.map(({ key }) => key),
        ['m', ''],
      );
      assert.match(await output([...words, 'samplekeys', 't']), /^\d+ {2}m\n\d+\n$/);
      await close();
    });
  });
}

describe('for programs', () => {
  test('--json makes one line of JSON of every error and warning, and leaves standard output empty', async (t) => {
    const { words, close } = await TARGETS['a server'](t);
    const cases: readonly (readonly [readonly string[], number, string, RegExp])[] = [
      [[...words, 'ls', 'none'], 1, 'NOT_FOUND', /none/],
      [[...words, 'read', 't', 'limit=1'], 2, 'INVALID_ARGUMENT', /"limit=1" is not known here/],
      [['ls'], 1, 'INVALID_ARGUMENT', /--address/],
      [['rea'], 2, 'INVALID_ARGUMENT', /^unknown command 'rea'/],
      [['read'], 2, 'INVALID_ARGUMENT', /^missing required argument 'table'/],
      [['read', '--what'], 2, 'INVALID_ARGUMENT', /^unknown option '--what'/],
      [[], 2, 'INVALID_ARGUMENT', /^no command is given/],
      [['set', 't', 'a\ufffd', 'f:q=1'], 2, 'INVALID_ARGUMENT', /UTF-8/],
    ];
    for (const [command, status, code, message] of cases) {
      const outcome = await edubba([...command, '--json']);
      assert.deepEqual([outcome.status, outcome.out], [status, ''], command.join(' '));
      const [{ error }, ...more] = documents(outcome.err) as [{ error: { code: string; message: string } }];
      assert.equal(error.code, code);
      assert.match(error.message, message);
      assert.deepEqual(more, []);
    }
    const warned = await edubba(['--json', ...words, 'createtable', 't', 'families=f']);
    assert.deepEqual([warned.status, Object.keys(documents(warned.err)[0] ?? {})], [0, ['warning']]);
    // after -- it is a word like any other
    assert.equal((await edubba([...words, 'set', '--', 't', '--json', 'f:q=1'])).status, 0);
    assert.match((await edubba([...words, 'lookup', '--', 't', '--jso'])).err, /^edubba: NOT_FOUND/);
    await close();
  });

  test('--progress tells on standard error how far long work is, and the answer is the same', async (t) => {
    const { words, close } = await TARGETS['a directory'](t);
    await output([...words, 'createtable', 't', 'families=f:never']);
    for (const row of ['a', 'b']) await output([...words, 'set', 't', row, 'f:q=1']);
    let [out, err] = ['', ''];
    // a clock on which the first wait is over at once, and no other ever
    class HastyClock extends ManualClock {
      #waits = 0;

      override timer(delayMs: number, wake: () => void): Timer {
        if (this.#waits++ === 0) queueMicrotask(wake);
        return super.timer(delayMs, () => {});
      }
    }
    const terminal = (): Terminal => ({
      environment: {},
      clock: new HastyClock(),
      columns: undefined,
      print: async (text) => void (out += text),
      complain: (text) => void (err += text),
    });
    assert.equal(await main([...words, '--progress', 'count', 't'], terminal()), 0);
    assert.equal(out, '2\n');
    assert.equal(err, 'counting t: 0 rows, 0 s\n');
    err = '';
    assert.equal(await main([...words, '--progress', '--json', 'compact'], terminal()), 0);
    assert.equal(err, '{"progress":{"message":"compacting all tables, 0 s"}}\n');
    await close();
  });

  test('the version is printed in three ways, with that of Node', async () => {
    const text = await output(['version']);
    assert.match(text, /^edubba \d+\.\d+\.\d+ \(Node \d+\.\d+\.\d+, \w+ \w+\)\n$/);
    assert.deepEqual([await output(['--version']), await output(['-V'])], [text, text]);
    for (const words of [
      ['version', '--json'],
      ['--version', '--json'],
      ['--json', '-V'],
    ]) {
      const [document] = documents(await output(words));
      assert.deepEqual(
        [document?.['node'], Object.keys(document ?? {})],
        [process.versions.node, ['version', 'node', 'platform', 'arch']],
      );
    }
  });
});
