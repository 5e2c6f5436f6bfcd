/**
 * One suite of behaviour for every door: the embedded library in memory and in a directory, and a server through the
 * Cloud API. It speaks the library's words; a subject returns a Database. Features that a subject lacks are
 * named in its manifest and skipped with words, never by edits here.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  BatchError,
  BigtableError,
  type Cell,
  Code,
  type Database,
  type Row,
  type RowFilter,
  RowMutation,
  type Table,
} from '../../src/embedded/index.ts';
import { endedCallTests } from './ended-calls.ts';
import { manyRowsTests } from './many-rows.ts';

export interface Subject {
  readonly database: Database;
  close(): Promise<void>;
}

export type Feature =
  | 'micros'
  | 'refusals change nothing'
  | 'refused increments'
  | 'order over families'
  | 'negative timestamps'
  | 'exact gc on read'
  | 'min and max'
  | 'drop of any row range'
  | 'checks of what asks for nothing'
  | 'value bitmasks';

export interface Manifest {
  readonly name: string;
  readonly lacks?: readonly Feature[];
  start(): Promise<Subject>;
}

/** Properties that every JavaScript object inherits. */
export const OBJECT_NAMES = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'valueOf',
  '__defineGetter__',
] as const;

/** Reads of no row at all. */
const NOTHING: readonly Parameters<Table['scan']>[0][] = [{ rows: [] }, { start: 'a', end: 'a' }];

const MIN = -(2n ** 63n);
const MAX = 2n ** 63n - 1n;

async function rowsOf(rows: AsyncIterable<Row>): Promise<Row[]> {
  const all: Row[] = [];
  for await (const row of rows) all.push(row);
  return all;
}

async function codeOf(call: Promise<unknown>): Promise<number> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof BigtableError, `not a BigtableError: ${String(error)}`);
    return error.code;
  }
  return Code.OK;
}

export function behaviourSuite(manifest: Manifest): void {
  const lacks = (feature: Feature): { skip: string | false } => ({
    skip: manifest.lacks?.includes(feature) ? `${manifest.name} lacks: ${feature}` : false,
  });

  /** A row's cells; sorted by family where the subject does not do it itself. */
  const cellsOf = ({ cells }: Row): readonly Cell[] =>
    manifest.lacks?.includes('order over families')
      ? [...cells].sort((a, b) => (a.family < b.family ? -1 : a.family > b.family ? 1 : 0))
      : cells;
  /** "row family:qualifier@time=value" lines of what a read gave. */
  const linesOf = async (rows: AsyncIterable<Row>): Promise<string[]> =>
    (await rowsOf(rows)).flatMap((row) =>
      cellsOf(row).map((cell) => `${row.name} ${cell.column}@${cell.timestamp}=${cell.text}`),
    );

  describe(`behaviour: ${manifest.name}`, () => {
    let subject: Subject;
    let database: Database;
    let count = 0;
    const table = (options: Parameters<Database['createTable']>[1] = { families: { f: {}, g: {} } }): Promise<Table> =>
      database.createTable(`t${++count}`, { granularity: 'millis', ...options });
    const set = (
      target: Table,
      row: string,
      column: string,
      value: string | Uint8Array | bigint,
      at = 1000n,
    ): Promise<void> => target.apply(new RowMutation(row).set(column, value, at));

    before(async () => {
      subject = await manifest.start();
      database = subject.database;
    });
    after(() => subject.close());

    test('a cell is read back with its row, column, timestamp and value', async () => {
      const t = await table();
      await set(t, 'com.cnn.www', 'f:x', 'hello', 5000n);
      const row = await t.get('com.cnn.www');
      assert.equal(row?.name, 'com.cnn.www');
      assert.deepEqual(
        row.cells.map((cell) => [cell.family, cell.qualifier.toString(), cell.timestamp, cell.text]),
        [['f', 'x', 5000n, 'hello']],
      );
      assert.equal(await t.get('com.cnn'), undefined);
    });

    test('row keys, qualifiers and values are arbitrary bytes, the empty qualifier and value included', async () => {
      const t = await table();
      const every = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
      await t.apply(new RowMutation(every).set({ family: 'f', qualifier: every }, every, 1000).set('f:', '', 1000));
      const [row] = await rowsOf(t.scan());
      assert.deepEqual(row?.key, every);
      assert.deepEqual(row.get({ family: 'f', qualifier: every })?.value, every);
      assert.equal(row.get('f:')?.value.length, 0);
    });

    test('rows come in byte order, columns by family and qualifier, versions newest first', async () => {
      const t = await table();
      for (const key of ['b', 'a\xff', 'a', 'B', 'a\x01']) await set(t, key, 'g:z', 'v');
      await t.apply(
        new RowMutation('a')
          .set('f:b', '1', 1000)
          .set('f:a', '2', 3000)
          .set('f:a', '3', 2000)
          .set('f:a\x01', '4', 1000),
      );
      assert.deepEqual(
        (await rowsOf(t.scan())).map((row) => row.name),
        ['B', 'a', 'a\x01', 'a\xff', 'b'],
      );
      assert.deepEqual(await linesOf(t.scan({ rows: ['a'], versions: 'all' })), [
        'a f:a@3000=2',
        'a f:a@2000=3',
        'a f:a\x01@1000=4',
        'a f:b@1000=1',
        'a g:z@1000=v',
      ]);
    });

    test('a mutation of several steps is applied in order', async () => {
      const t = await table();
      await t.apply(new RowMutation('r').set('f:a', '1', 1000).deleteRow().set('f:b', '2', 1000));
      assert.deepEqual(await linesOf(t.scan()), ['r f:b@1000=2']);
      await t.apply(
        new RowMutation('r').set('f:c', '3', 1000).delete('f:c').set('f:c', '4', 500_000n).deleteFamily('g'),
      );
      assert.deepEqual(await linesOf(t.scan()), ['r f:b@1000=2', 'r f:c@500000=4']);
    });

    test('a mutation with one bad step changes nothing', lacks('refusals change nothing'), async () => {
      const t = await table();
      assert.equal(
        (await codeOf(t.apply(new RowMutation('r').set('f:a', '1', 1000).set('nofamily:a', '2', 1000)))) > 0,
        true,
      );
      assert.deepEqual(await linesOf(t.scan()), []);
    });

    test('the same column and timestamp overwrites', async () => {
      const t = await table();
      await set(t, 'r', 'f:a', 'old');
      await set(t, 'r', 'f:a', 'new');
      assert.deepEqual(await linesOf(t.scan({ versions: 'all' })), ['r f:a@1000=new']);
    });

    test('deletions hide what was written before, whatever its timestamp, and nothing after', async () => {
      const t = await table();
      await set(t, 'r', 'f:a', 'future', 9_000_000_000_000_000n);
      await t.apply(new RowMutation('r').delete('f:a'));
      assert.equal(await t.get('r'), undefined);
      await set(t, 'r', 'f:a', 'past', 1000n);
      assert.deepEqual(await linesOf(t.scan()), ['r f:a@1000=past']);
      await t.deleteRow('r');
      await set(t, 'r', 'g:b', 'again', 1000n);
      assert.deepEqual(await linesOf(t.scan()), ['r g:b@1000=again']);
    });

    test('a deletion of a time range takes start and leaves end', async () => {
      const t = await table();
      for (const at of [1000n, 2000n, 3000n, 4000n]) await set(t, 'r', 'f:a', String(at), at);
      await t.apply(new RowMutation('r').delete('f:a', { since: 2000, until: 4000 }));
      assert.deepEqual(await linesOf(t.scan({ versions: 'all' })), ['r f:a@4000=4000', 'r f:a@1000=1000']);
      await t.apply(new RowMutation('r').delete('f:a', { since: 2000 }));
      assert.deepEqual(await linesOf(t.scan({ versions: 'all' })), ['r f:a@1000=1000']);
    });

    test('get at a time answers the newest version at or below it', async () => {
      const t = await table();
      for (const at of [1000n, 3000n]) await set(t, 'r', 'f:a', String(at), at);
      for (const [at, want] of [
        [999, undefined],
        [1000, '1000'],
        [2999, '1000'],
        [3000, '3000'],
        [MAX, '3000'],
      ] as const) {
        assert.equal((await t.getCell('r', 'f:a', at))?.text, want, `at ${at}`);
      }
    });

    test('the database gives its time where none is given', async () => {
      const t = await table();
      // the database may read a finer clock, which differs from Date's by a few milliseconds
      const before = BigInt(Date.now() - 20) * 1000n;
      await t.apply(new RowMutation('r').set('f:a', 'v'));
      const at = (await t.getCell('r', 'f:a'))?.timestamp as bigint;
      assert.ok(at >= before && at <= BigInt(Date.now() + 20) * 1000n, `${at}`);
      assert.equal(at % 1000n, 0n);
    });

    test('timestamps cover int64 exactly', lacks('micros'), async () => {
      const t = await table({ families: { f: {} }, granularity: 'micros' });
      const some = [
        2n ** 53n - 1n,
        2n ** 53n,
        2n ** 53n + 1n,
        MAX,
        0n,
        ...(lacks('negative timestamps').skip ? [] : [MIN, -(2n ** 53n) - 1n, -2n]),
      ];
      for (const at of some) await set(t, 'r', 'f:a', String(at), at);
      const row = await t.get('r', { versions: 'all' });
      assert.deepEqual(
        row?.cells.map((cell) => cell.timestamp),
        [...some].sort((a, b) => (a < b ? 1 : -1)),
      );
      for (const cell of row.cells) assert.equal(cell.text, String(cell.timestamp));
      for (const at of some) assert.equal((await t.getCell('r', 'f:a', at))?.text, String(at));
      await t.apply(new RowMutation('r').delete('f:a', { since: 2n ** 53n, until: 2n ** 53n + 1n }));
      assert.equal((await t.get('r', { versions: 'all' }))?.cells.length, some.length - 1);
    });

    test('counters cover int64 exactly and wrap', async () => {
      const t = await table();
      for (const n of [2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, MAX, MIN, -1n]) {
        const row = `row ${n}`;
        await set(t, row, 'f:n', n);
        assert.equal(await t.increment(row, 'f:n', 0), n);
        assert.equal(await t.increment(row, 'f:n', 1), BigInt.asIntN(64, n + 1n));
        assert.equal(await t.increment(row, 'f:n', -2), BigInt.asIntN(64, n - 1n));
      }
      assert.equal(await t.increment('new', 'f:n', MIN), MIN);
    });

    test('an increment of what is no counter is refused and changes nothing', lacks('refused increments'), async () => {
      const t = await table();
      for (const text of ['', 'abc', '9 letters']) {
        await set(t, 'r', 'f:n', text);
        assert.ok(
          [Code.FAILED_PRECONDITION, Code.INVALID_ARGUMENT].includes((await codeOf(t.increment('r', 'f:n'))) as 3 | 9),
        );
        const both = t.readModifyWrite('r', [
          { family: 'f', qualifier: 's', change: { kind: 'append', suffix: Buffer.from('x') } },
          { family: 'f', qualifier: 'n', change: { kind: 'increment', amount: 1 } },
        ]);
        assert.notEqual(await codeOf(both), Code.OK);
        assert.deepEqual(await linesOf(t.scan({ versions: 'all' })), [`r f:n@1000=${text}`]);
      }
    });

    test('read-modify-write applies its rules in order and answers the new cells', async () => {
      const t = await table();
      await set(t, 'r', 'f:s', 'ab');
      const cells = await t.readModifyWrite('r', [
        { family: 'f', qualifier: 's', change: { kind: 'append', suffix: Buffer.from('cd') } },
        { family: 'f', qualifier: 's', change: { kind: 'append', suffix: Buffer.from('ef') } },
        { family: 'g', qualifier: 'n', change: { kind: 'increment', amount: 7 } },
      ]);
      const [s, n] = manifest.lacks?.includes('order over families')
        ? [...cells].sort((a, b) => (a.column < b.column ? -1 : 1))
        : cells;
      assert.deepEqual([cells.length, s?.column, s?.text, n?.column, n?.int], [2, 'f:s', 'abcdef', 'g:n', 7n]);
      assert.equal((await t.getCell('r', 'f:s'))?.text, 'abcdef');
    });

    test('concurrent increments lose nothing', async () => {
      const t = await table();
      const answers = await Promise.all(Array.from({ length: 50 }, () => t.increment('r', 'f:n')));
      assert.deepEqual(
        answers.sort((a, b) => Number(a - b)),
        Array.from({ length: 50 }, (_, i) => BigInt(i + 1)),
      );
    });

    test('check-and-mutate picks by the predicate', async () => {
      const t = await table();
      await set(t, 'r', 'f:a', 'x');
      const outcome = (predicate: Parameters<Table['checkAndMutate']>[1]): Promise<boolean> =>
        t.checkAndMutate('r', predicate, {
          then: (row) => row.set('g:yes', '1', 1000),
          otherwise: (row) => row.set('g:no', '1', 1000),
        });
      assert.equal(await outcome({ column: 'f:a', equals: 'x' }), true);
      assert.deepEqual(await linesOf(t.scan({ families: ['g'] })), ['r g:yes@1000=1']);
      assert.equal(await outcome({ column: 'f:a', equals: 'y' }), false);
      assert.equal(await outcome({ column: 'f:b' }), false);
      assert.deepEqual(await linesOf(t.scan({ families: ['g'] })), ['r g:no@1000=1', 'r g:yes@1000=1']);
    });

    test('only one of many concurrent check-and-mutates wins', async () => {
      const t = await table();
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          t.checkAndMutate('r', { column: 'f:lock' }, { otherwise: (row) => row.set('f:lock', String(i), 1000) }),
        ),
      );
      assert.equal(answers.filter((matched) => !matched).length, 1);
    });

    test('ranges, prefixes, keys, limits, forward and reverse', async () => {
      const t = await table();
      await t.applyAll(['a', 'b', 'ba', 'bb', 'c', 'd'].map((key) => new RowMutation(key).set('f:x', key, 1000)));
      const keys = async (options: Parameters<Table['scan']>[0]): Promise<string> =>
        (await rowsOf(t.scan(options))).map((row) => row.name).join(' ');
      for (const reverse of [false, true]) {
        const order = (text: string): string => (reverse ? text.split(' ').reverse().join(' ') : text);
        assert.equal(await keys({ reverse }), order('a b ba bb c d'));
        assert.equal(await keys({ reverse, start: 'b', end: 'c' }), order('b ba bb'));
        assert.equal(await keys({ reverse, start: 'bb' }), order('bb c d'));
        assert.equal(await keys({ reverse, end: 'b' }), 'a');
        assert.equal(await keys({ reverse, prefix: 'b' }), order('b ba bb'));
        assert.equal(await keys({ reverse, rows: ['d', 'a', 'a', 'zz', 'bb'] }), order('a bb d'));
      }
      assert.equal(await keys({ limit: 2 }), 'a b');
      assert.equal(await keys({ limit: 2, reverse: true }), 'd c');
      assert.equal(await keys({ start: 'x' }), '');
    });

    test('what asks for nothing gives and changes nothing', async () => {
      const t = await table();
      await t.applyAll(['a', 'b'].map((key) => new RowMutation(key).set('f:x', key, 1000)));
      for (const reverse of [false, true])
        for (const nothing of NOTHING) assert.deepEqual(await linesOf(t.scan({ ...nothing, reverse })), []);
      for (const option of [{ start: 'b', end: '' }, { end: '' }, { start: '' }, { start: 'b', end: 'a' }])
        assert.equal(await codeOf(rowsOf(t.scan(option))), Code.INVALID_ARGUMENT);
      await t.applyAll([]);
      await t.deleteRows({ start: 'a', end: 'a' });
      assert.equal((await rowsOf(t.scan())).length, 2);
    });

    test('what asks for nothing is checked like anything else', lacks('checks of what asks for nothing'), async () => {
      const none = database.table('none');
      for (const nothing of NOTHING)
        assert.equal(await codeOf(rowsOf(none.scan(nothing))), Code.NOT_FOUND, JSON.stringify(nothing));
      assert.equal(await codeOf(none.applyAll([])), Code.NOT_FOUND);
      assert.equal(await codeOf(none.deleteRows({ start: 'a', end: 'a' })), Code.NOT_FOUND);
      const t = await table();
      for (const nothing of NOTHING) {
        for (const filter of [
          { kind: 'valueRegex', regex: '(' },
          { kind: 'cellsPerRowLimit', cells: 0 },
        ] as const) {
          assert.equal(
            await codeOf(rowsOf(t.scan({ ...nothing, filter }))),
            Code.INVALID_ARGUMENT,
            JSON.stringify([nothing, filter]),
          );
        }
      }
      const misnamed = database.table('not a name');
      // they are answered in any order
      const codes = [
        misnamed.sampleKeys(),
        misnamed.schema(),
        misnamed.applyAll([]),
        rowsOf(misnamed.scan({ rows: [] })),
      ].map((call) => codeOf(call));
      for (const code of await Promise.all(codes)) assert.equal(code, Code.INVALID_ARGUMENT);
    });

    test('a list of nothing reads nothing, and a range of nothing deletes nothing', async () => {
      const t = await table();
      await t.applyAll(['a', 'b', 'c'].map((key) => new RowMutation(key).set('f:x', key, 1000)));
      for (const none of [{ rows: [] }, { families: [] }, { columns: [] }]) {
        assert.deepEqual(await linesOf(t.scan(none)), [], JSON.stringify(none));
        assert.deepEqual(
          await linesOf(t.scan({ ...none, reverse: true, limit: 5, versions: 'all' })),
          [],
          JSON.stringify(none),
        );
      }
      await t.deleteRows({ start: 'b', end: 'b' });
      await t.deleteRows({ prefix: 'bb' });
      assert.deepEqual(
        (await rowsOf(t.scan())).map(({ name }) => name),
        ['a', 'b', 'c'],
      );
    });

    test('a limit counts only rows that give cells', async () => {
      const t = await table();
      await t.applyAll(
        ['a', 'b', 'c', 'd'].map((key) => new RowMutation(key).set(key < 'c' ? 'f:x' : 'g:x', key, 1000)),
      );
      assert.deepEqual(await linesOf(t.scan({ families: ['g'], limit: 1 })), ['c g:x@1000=c']);
    });

    test('families, columns, column regular expressions and ranges', async () => {
      const t = await table();
      await t.apply(
        new RowMutation('r')
          .set('f:a.cnn.com', '1', 1000)
          .set('f:b.cnn.com', '2', 1000)
          .set('f:cnn.org', '3', 1000)
          .set('g:a.cnn.com', '4', 1000),
      );
      const values = async (options: Parameters<Table['scan']>[0]): Promise<string> =>
        (await rowsOf(t.scan(options))).flatMap((row) => cellsOf(row).map((cell) => cell.text)).join('');
      assert.equal(await values({ families: ['g'] }), '4');
      assert.equal(await values({ families: ['g', 'f'] }), '1234');
      assert.equal(await values({ columnRegex: 'f:.*\\.cnn\\.com' }), '12');
      assert.equal(await values({ columnRegex: '.*:a.*' }), '14');
      assert.equal(await values({ columnRange: { family: 'f', start: 'b', end: 'cnn.org' } }), '2');
    });

    test('column and value ranges take their bounds literally, empty ones too', async () => {
      const t = await table();
      const names = ['', '\x00', 'a', 'a\x00', 'b'];
      await t.apply(
        names.reduce((row, name) => row.set({ family: 'f', qualifier: name }, name, 1000), new RowMutation('r')),
      );
      const bounds = [
        undefined,
        ...['', 'a', 'b'].flatMap((value) => [
          { value, closed: true },
          { value, closed: false },
        ]),
      ];
      for (const start of bounds) {
        for (const end of bounds) {
          const isAbove = (name: string): boolean =>
            start === undefined || name > start.value || (start.closed && name === start.value);
          const isBelow = (name: string): boolean =>
            end === undefined || name < end.value || (end.closed && name === end.value);
          const expected = names.filter((name) => isAbove(name) && isBelow(name));
          const range = { ...(start && { start }), ...(end && { end }) };
          for (const filter of [
            { kind: 'columnRange', family: 'f', ...range },
            { kind: 'valueRange', ...range },
          ] as const) {
            assert.deepEqual(
              (await t.get('r', { filter }))?.cells.map((cell) => cell.text) ?? [],
              expected,
              JSON.stringify(filter),
            );
          }
        }
      }
    });

    test('text in filters, ranges and rules is UTF-8, and expressions in text are of characters', async () => {
      const t = await table();
      for (const [key, column, value] of [
        ['ключ', 'f:Zürich', 'Zürich'],
        ['日本', 'f:東京', '東京'],
        ['plain', 'f:q', 'Zurich'],
      ] as const)
        await set(t, key, column, value);
      const texts = async (filter: RowFilter): Promise<string[]> =>
        (await rowsOf(t.scan({ filter }))).flatMap((row) => cellsOf(row).map((cell) => cell.text));
      assert.deepEqual(await texts({ kind: 'valueRegex', regex: 'Zürich' }), ['Zürich']);
      assert.deepEqual(await texts({ kind: 'valueRegex', regex: 'Z[äöü]rich' }), ['Zürich']);
      assert.deepEqual(await texts({ kind: 'valueRegex', regex: 'Z.rich' }), ['Zurich', 'Zürich']);
      assert.deepEqual(await texts({ kind: 'valueRegex', regex: '(?i)zÜrich' }), ['Zürich']);
      assert.deepEqual(await texts({ kind: 'valueRegex', regex: '..' }), ['東京']);
      assert.deepEqual(await texts({ kind: 'rowKeyRegex', regex: 'ключ|日.' }), ['Zürich', '東京']);
      assert.deepEqual(await texts({ kind: 'columnQualifierRegex', regex: 'Zü+rich' }), ['Zürich']);
      assert.deepEqual(
        await texts({
          kind: 'columnRange',
          family: 'f',
          start: { value: 'Zü', closed: true },
          end: { value: '東', closed: false },
        }),
        ['Zurich', 'Zürich'],
      );
      assert.deepEqual(await texts({ kind: 'valueRange', start: { value: 'Zü', closed: true } }), ['Zürich', '東京']);
      if (!lacks('value bitmasks').skip)
        assert.deepEqual(await texts({ kind: 'valueBitmask', mask: 'Zürich' }), ['Zürich']);
      assert.deepEqual(
        await texts({ kind: 'interleave', filters: [{ kind: 'valueRegex', regex: '東京' }, { kind: 'blockAll' }] }),
        ['東京'],
      );
      // bytes are bytes: one of the two that ü has, and a byte at a time
      assert.deepEqual(await texts({ kind: 'valueRegex', regex: Buffer.from('Z[\xc3]..ich', 'latin1') }), ['Zürich']);
      assert.deepEqual(await texts({ kind: 'valueRegex', regex: Buffer.from('Z.rich', 'latin1') }), ['Zurich']);
      const row = async (options: Parameters<Table['scan']>[0]): Promise<string[]> =>
        (await rowsOf(t.scan(options))).map(({ name }) => name);
      assert.deepEqual(await row({ columnRegex: 'f:[ü東].*' }), ['日本']);
      assert.deepEqual(await row({ columnRegex: 'f:Z.rich' }), ['ключ']);
      assert.deepEqual(await row({ prefix: 'клю' }), ['ключ']);
      assert.equal(
        await t.checkAndMutate(
          'ключ',
          { filter: { kind: 'valueRegex', regex: 'Zü.*' } },
          { then: (r) => r.set('g:checked', 'ja', 1000) },
        ),
        true,
      );
      const cells = await t.readModifyWrite('ключ', [
        { family: 'f', qualifier: 'Zürich', change: { kind: 'append', suffix: ' Höngg' } },
      ]);
      assert.deepEqual(
        cells.map((cell) => [cell.column, cell.text]),
        [['f:Zürich', 'Zürich Höngg']],
      );
    });

    test('a filter that is changed between two reads means what it says then', async () => {
      const t = await table();
      await t.applyAll(['a', 'b'].map((value) => new RowMutation(value).set('f:q', value, 1000)));
      const filter = { kind: 'valueRegex' as const, regex: 'a' };
      assert.deepEqual(
        (await rowsOf(t.scan({ filter, versions: 'all' }))).map(({ name }) => name),
        ['a'],
      );
      filter.regex = 'b';
      assert.deepEqual(
        (await rowsOf(t.scan({ filter, versions: 'all' }))).map(({ name }) => name),
        ['b'],
      );
    });

    test('times are Dates, bigints and numbers of microseconds', async () => {
      const t = await table();
      const noon = new Date('2026-01-01T12:00:00Z');
      await t.apply(
        new RowMutation('r')
          .set('f:a', 'date', noon)
          .set('f:b', 'number', noon.getTime() * 1000)
          .set('f:c', 'early', 1_700_000_000_000n),
      );
      assert.deepEqual(
        (await t.get('r'))?.cells.map(({ timestamp }) => timestamp),
        [BigInt(noon.getTime()) * 1000n, BigInt(noon.getTime()) * 1000n, 1_700_000_000_000n],
      );
      assert.deepEqual(await linesOf(t.scan({ filter: { kind: 'timestampRange', range: { end: noon } } })), [
        'r f:c@1700000000000=early',
      ]);
    });

    test('columns of several families come in order', lacks('order over families'), async () => {
      const t = await table();
      await t.apply(new RowMutation('r').set('g:a', '3', 1000).set('f:b', '2', 1000).set('f:a', '1', 1000));
      const row = await t.get('r', { columns: ['g:a', 'f:b', 'f:a', 'f:b'] });
      assert.deepEqual(
        row?.cells.map((cell) => cell.text),
        ['1', '2', '3'],
      );
      assert.deepEqual(
        (await t.get('r', { cellsPerRow: 2 }))?.cells.map((cell) => cell.text),
        ['1', '2'],
      );
    });

    test('time ranges and numbers of versions', async () => {
      const t = await table();
      for (const at of [1000n, 2000n, 3000n])
        await t.apply(new RowMutation('r').set('f:a', `a${at}`, at).set('g:b', `b${at}`, at));
      const texts = async (options: Parameters<Table['scan']>[0]): Promise<string[]> =>
        (await rowsOf(t.scan(options))).flatMap((row) => cellsOf(row).map((cell) => cell.text));
      assert.deepEqual(await texts({}), ['a3000', 'b3000']);
      assert.deepEqual(await texts({ versions: 2 }), ['a3000', 'a2000', 'b3000', 'b2000']);
      assert.deepEqual(await texts({ since: 1000, until: 3000, versions: 'all' }), [
        'a2000',
        'a1000',
        'b2000',
        'b1000',
      ]);
      assert.deepEqual(await texts({ until: 2000 }), ['a1000', 'b1000']);
    });

    test('a read never shows what the garbage-collection rules drop', lacks('exact gc on read'), async () => {
      const hour = 3_600_000;
      const t = await table({
        families: {
          versions: { maxVersions: 2 },
          age: { maxAgeMs: hour },
          either: { maxVersions: 2, maxAgeMs: hour },
          both: {
            gcRule: {
              kind: 'intersection',
              rules: [
                { kind: 'maxVersions', versions: 2 },
                { kind: 'maxAge', ageMicros: hour * 1000 },
              ],
            },
          },
        },
      });
      const now = Date.now();
      const row = new RowMutation('r');
      for (const family of ['versions', 'age', 'either', 'both']) {
        for (const [name, at] of [
          ['new1', now],
          ['new2', now - 1000],
          ['new3', now - 2000],
          ['old', now - 2 * hour],
        ] as const)
          row.set(`${family}:q`, name, new Date(at));
      }
      await t.apply(row);
      const kept = async (family: string): Promise<string> =>
        ((await t.get('r', { families: [family], versions: 'all' }))?.cells ?? []).map((cell) => cell.text).join(' ');
      assert.equal(await kept('versions'), 'new1 new2');
      assert.equal(await kept('age'), 'new1 new2 new3');
      assert.equal(await kept('either'), 'new1 new2');
      assert.equal(await kept('both'), 'new1 new2 new3');
    });

    test('sums, minima and maxima are merged and never overwritten', lacks('min and max'), async () => {
      const t = await table({
        families: { sum: { aggregate: 'sum' }, min: { aggregate: 'min' }, max: { aggregate: 'max' } },
      });
      for (const n of [6, 5, 7, 6]) await t.apply(new RowMutation('r').add('sum:n', n).add('min:n', n).add('max:n', n));
      const row = await t.get('r');
      assert.deepEqual(
        ['sum:n', 'min:n', 'max:n'].map((column) => row?.get(column)?.int),
        [24n, 5n, 7n],
      );
      await t.apply(new RowMutation('r').delete('sum:n').add('sum:n', 2n ** 53n + 1n));
      assert.equal((await t.get('r'))?.get('sum:n')?.int, 2n ** 53n + 1n);
    });

    test('dropping rows by prefix and all of them', async () => {
      const t = await table();
      await t.applyAll(['a1', 'a2', 'b1'].map((key) => new RowMutation(key).set('f:x', key, 1000)));
      await t.deleteRows({ prefix: 'a' });
      assert.deepEqual(await linesOf(t.scan()), ['b1 f:x@1000=b1']);
      await set(t, 'a1', 'f:x', 'again');
      await t.deleteAllRows();
      assert.deepEqual(await linesOf(t.scan()), []);
    });

    test('a family that is dropped and made again is empty', async () => {
      const t = await table();
      await set(t, 'r', 'f:a', 'old');
      await t.deleteFamily('f');
      assert.deepEqual(await linesOf(t.scan()), []);
      assert.notEqual(await codeOf(set(t, 'r', 'f:a', 'x')), Code.OK);
      await t.createFamily('f');
      assert.deepEqual(await linesOf(t.scan()), []);
      await set(t, 'r', 'f:a', 'new');
      assert.deepEqual(await linesOf(t.scan({ families: ['f'], columns: ['f:a'] })), ['r f:a@1000=new']);
    });

    test('what every object has is a name like any other', async () => {
      const t = await table({ families: Object.fromEntries(OBJECT_NAMES.map((name) => [name, { maxVersions: 2 }])) });
      for (const name of OBJECT_NAMES) {
        const named = await database.createTable(name, { granularity: 'millis', families: { [name]: {} } });
        await set(named, name, `${name}:${name}`, name);
        assert.deepEqual(await linesOf(named.scan()), [`${name} ${name}:${name}@1000=${name}`]);
        assert.equal(await database.hasTable(name), true);
        await t.apply(new RowMutation('r').set(`${name}:${name}`, name, 1000));
      }
      const families = async (): Promise<unknown[]> =>
        Object.entries((await t.schema()).families)
          .map(([name, { gcRule }]) => [name, gcRule])
          .sort();
      const rule = { kind: 'maxVersions', versions: 2 } as const;
      const sorted = [...OBJECT_NAMES].sort();
      assert.deepEqual(
        await families(),
        sorted.map((name) => [name, rule]),
      );
      assert.deepEqual(
        (await rowsOf(t.scan({ families: ['__proto__'] }))).flatMap(cellsOf).map((cell) => cell.column),
        ['__proto__:__proto__'],
      );
      assert.deepEqual(
        (await rowsOf(t.scan())).flatMap(cellsOf).map((cell) => cell.column),
        sorted.map((name) => `${name}:${name}`),
      );
      for (const name of OBJECT_NAMES) {
        await t.setGcRule(name, { kind: 'maxVersions', versions: 3 });
        await t.deleteFamily(name);
        assert.equal((await codeOf(set(t, 'r', `${name}:${name}`, 'x'))) === Code.OK, false);
        await t.createFamily(name);
        await database.deleteTable(name);
        assert.equal(await database.hasTable(name), false);
      }
      assert.deepEqual(
        await families(),
        sorted.map((name) => [name, undefined]),
      );
      assert.deepEqual(await linesOf(t.scan()), []);
    });

    test('a split table reads as one, forward and reverse', async () => {
      const t = await table({ families: { f: {} }, splits: ['g', 'n', 't'] });
      const keys = [...'abcdefghijklmnopqrstuvwxyz'];
      await t.applyAll(keys.map((key) => new RowMutation(key).set('f:x', key, 1000)));
      assert.deepEqual(
        (await rowsOf(t.scan())).map((row) => row.name),
        keys,
      );
      assert.deepEqual(
        (await rowsOf(t.scan({ reverse: true, limit: 20 }))).map((row) => row.name),
        [...keys].reverse().slice(0, 20),
      );
      assert.deepEqual(
        (await rowsOf(t.scan({ start: 'f', end: 'o' }))).map((row) => row.name),
        [...'fghijklmn'],
      );
    });

    test('rows of any range are dropped over tablets', lacks('drop of any row range'), async () => {
      const t = await table({ families: { f: {} }, splits: ['g', 'n', 't'] });
      await t.applyAll([...'abcghnotxyz'].map((key) => new RowMutation(key).set('f:x', key, 1000)));
      await t.deleteRows({ start: 'b', end: 'x' });
      assert.deepEqual(
        (await rowsOf(t.scan())).map((row) => row.name),
        ['a', 'x', 'y', 'z'],
      );
    });

    test('tables are created, listed and deleted; their names are checked', async () => {
      const t = await table();
      assert.ok((await database.listTables()).includes(t.name));
      assert.equal(await database.hasTable(t.name), true);
      assert.equal(await codeOf(database.createTable(t.name)), Code.ALREADY_EXISTS);
      await set(t, 'r', 'f:a', 'x');
      await database.deleteTable(t.name);
      assert.equal(await database.hasTable(t.name), false);
      assert.equal(await codeOf(t.get('r')), Code.NOT_FOUND);
      assert.equal(await codeOf(set(t, 'r', 'f:a', 'x')), Code.NOT_FOUND);
      assert.equal(await codeOf(database.deleteTable(t.name)), Code.NOT_FOUND);
      await database.createTable(t.name, { families: { f: {} } });
      assert.deepEqual(await linesOf(t.scan()), []);
    });

    test('a table is opened as often as one likes, and what is missing is made', async () => {
      const name = `opened${++count}`;
      const families = { f: { maxVersions: 2 }, sum: { aggregate: 'sum' } } as const;
      const first = await database.openTable(name, { families, granularity: 'millis' });
      await set(first, 'r', 'f:a', 'kept');
      const again = await database.openTable(name, { families: { ...families, g: { maxAgeMs: 5000 } }, splits: ['m'] });
      await set(again, 'r', 'g:a', 'new', BigInt(Date.now()) * 1000n);
      assert.deepEqual(
        Object.values((await again.schema()).families)
          .map(({ name: family, gcRule, valueType }) => [family, gcRule?.kind, valueType?.aggregate?.kind])
          .sort(),
        [
          ['f', 'maxVersions', undefined],
          ['g', 'maxAge', undefined],
          ['sum', undefined, 'sum'],
        ],
      );
      assert.equal((await first.getCell('r', 'f:a'))?.text, 'kept');
      assert.equal((await database.openTable(name)).fullName, first.fullName);
      // what is left out of a rule takes any
      await database.openTable(name, { families: { f: {} } });
    });

    test('opening a table changes nothing that is there', async () => {
      const name = `opened${++count}`;
      const rule = {
        kind: 'union',
        rules: [
          { kind: 'maxVersions', versions: 2 },
          { kind: 'maxAge', ageMicros: 5e6 },
        ],
      } as const;
      const families = { f: { gcRule: rule }, g: {}, sum: { aggregate: 'sum' } } as const;
      const table = await database.openTable(name, { families, granularity: 'millis' });
      const before = await table.schema();
      const refused: readonly [options: Parameters<Database['openTable']>[1], message: RegExp][] = [
        [
          { families: { f: { maxVersions: 3 } } },
          /opened.*"f" with the GC rule \{"kind":"union".* asks for \{"kind":"maxVersions","versions":3\}.*setGcRule\("f"/,
        ],
        [{ families: { g: { maxVersions: 3 } } }, /"g" with the GC rule never/],
        [{ families: { f: { gcRule: 'never' } } }, /asks for never/],
        [{ families: { g: { aggregate: 'sum' } } }, /"g" of plain cells.*asks for aggregate sum/],
        [{ families: { sum: {} } }, /"sum" of aggregate sum.*asks for plain cells/],
        [{ families: { h: {}, sum: { aggregate: 'max' } } }, /aggregate max/],
        [{ granularity: 'micros' }, /timestamps in millis.*asks for micros/],
      ];
      for (const [options, message] of refused)
        await assert.rejects(
          database.openTable(name, options),
          { code: Code.FAILED_PRECONDITION, message },
          JSON.stringify(options),
        );
      assert.deepEqual(await table.schema(), before);
      // the same rule in other words
      await database.openTable(name, { families: { f: { maxAgeMs: 5000, maxVersions: 2 }, g: { gcRule: 'never' } } });
      await database.openTable(name, { families: { f: { gcRule: { ...rule, rules: [...rule.rules].reverse() } } } });
    });

    test('many open a table at once, each with families of its own', async () => {
      const name = `opened${++count}`;
      const tables = await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
          database.openTable(name, { families: { all: {}, [`f${i % 4}`]: {} }, granularity: 'millis' }),
        ),
      );
      await Promise.all(tables.map((table, i) => set(table, `r${i}`, `f${i % 4}:a`, 'x')));
      assert.deepEqual(Object.keys((await tables[0]?.schema())?.families ?? {}).sort(), [
        'all',
        'f0',
        'f1',
        'f2',
        'f3',
      ]);
    });

    test('a batch answers for each of its mutations', async () => {
      const t = await table();
      await assert.rejects(
        t.applyAll([
          new RowMutation('a').set('f:x', '1', 1000),
          new RowMutation('b').set('no:x', '2', 1000),
          new RowMutation('c').set('f:x', '3', 1000),
        ]),
        (error: unknown) => {
          assert.deepEqual(
            (error as { failures: { index: number }[] }).failures.map(({ index }) => index),
            [1],
          );
          return true;
        },
      );
      assert.deepEqual(
        (await rowsOf(t.scan())).map((row) => row.name),
        ['a', 'c'],
      );
    });

    test('an entry of a batch that is malformed fails by itself', lacks('refusals change nothing'), async () => {
      const t = await table();
      const good = (key: string): RowMutation => new RowMutation(key).set('f:x', key, 1000);
      const bad: readonly (readonly [RowMutation, number])[] = [
        [good(''), Code.INVALID_ARGUMENT],
        [good('k'.repeat(65_537)), Code.INVALID_ARGUMENT],
        [new RowMutation('nothing'), Code.INVALID_ARGUMENT],
        [good('family').set('a b:x', '', 1000), Code.INVALID_ARGUMENT],
        [good('qualifier').set(`f:${'q'.repeat(16_385)}`, '', 1000), Code.INVALID_ARGUMENT],
        [good('granularity').set('f:x', '', 1001), Code.INVALID_ARGUMENT],
        [good('no family').set('no:x', '', 1000), Code.NOT_FOUND],
        [good('no aggregate').add('f:x', 1), Code.INVALID_ARGUMENT],
      ];
      const batch = bad.flatMap(([mutation], i) => [good(`good ${i}`), mutation]);
      await assert.rejects(t.applyAll(batch), (error: unknown) => {
        assert.ok(error instanceof BatchError);
        assert.deepEqual(
          error.failures.map(({ index, error: { code } }) => [index, code]),
          bad.map(([, code], i) => [2 * i + 1, code]),
        );
        return true;
      });
      assert.deepEqual(
        await linesOf(t.scan()),
        bad.map((_, i) => `good ${i} f:x@1000=good ${i}`),
      );
      await assert.rejects(t.applyAll([good('')]), { name: 'BatchError', code: Code.INVALID_ARGUMENT });
    });

    test('a read that is left early leaves the table usable', async () => {
      const t = await table();
      await t.applyAll(
        Array.from({ length: 500 }, (_, i) =>
          new RowMutation(`r${String(i).padStart(4, '0')}`).set('f:x', Buffer.alloc(2000, i), 1000),
        ),
      );
      for await (const row of t.scan()) {
        assert.equal(row.name, 'r0000');
        break;
      }
      assert.equal((await rowsOf(t.scan())).length, 500);
    });

    manyRowsTests(() => table());

    endedCallTests({ database: () => database, table: () => table() });

    test('a value of 5 MB and a row of many of them', async () => {
      const t = await table();
      const value = Buffer.alloc(5_000_000, 'abc');
      for (let i = 0; i < 4; i++) await set(t, 'r', `f:${i}`, value);
      const row = await t.get('r');
      assert.equal(row?.cells.length, 4);
      for (const cell of row.cells) assert.ok(cell.value.equals(value));
    });
  });
}
