import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ManualClock } from '../../env/index.ts';
import { type ProgressOptions, withProgress } from './progress.ts';
import type { Terminal } from './terminal.ts';

interface Started {
  readonly clock: ManualClock;
  /** The text written on standard error. */
  readonly told: readonly string[];
  end(fails?: Error): void;
  readonly ended: Promise<string>;
}

/** Work that ends on request, on a clock that is moved by hand. */
function start(columns: number | undefined, options: ProgressOptions, text = 'counting t: 7 rows'): Started {
  const clock = new ManualClock();
  const told: string[] = [];
  const terminal: Terminal = {
    environment: {},
    clock,
    columns,
    print: async () => assert.fail('progress is never an answer'),
    complain: (line) => void told.push(line),
  };
  let end: (fails?: Error) => void = () => {};
  const work = new Promise<string>(
    (resolve, reject) => (end = (fails) => (fails === undefined ? resolve('done') : reject(fails))),
  );
  return {
    clock,
    told,
    end: (fails) => end(fails),
    ended: withProgress(
      terminal,
      options,
      () => text,
      () => work,
    ),
  };
}

describe('progress', () => {
  test('on a terminal one line is rewritten, five times a second, and is gone in the end', async () => {
    const { clock, told, end, ended } = start(80, {});
    clock.advance(499);
    assert.equal(told.length, 0);
    clock.advance(1);
    assert.deepEqual(told, ['\r\x1b[Kcounting t: 7 rows, 1 s']);
    clock.advance(2000);
    assert.equal(told.length, 11);
    assert.ok(told.every((line) => line.startsWith('\r\x1b[K') && !line.includes('\n')));
    end();
    assert.equal(await ended, 'done');
    assert.equal(told.at(-1), '\r\x1b[K');
    clock.advance(10_000);
    assert.equal(told.length, 12);
  });

  test('a line is never wider than the terminal', async () => {
    for (const [columns, width] of [
      [20, 19],
      [0, 79],
    ] as const) {
      const { clock, told, end, ended } = start(columns, {}, '☃'.repeat(200));
      clock.advance(600);
      assert.equal([...(told[0] as string).replace('\r\x1b[K', '')].length, width);
      end();
      await ended;
    }
  });

  test('elsewhere nothing is written, except requested lines, in JSON too', async () => {
    const cases: readonly (readonly [number | undefined, ProgressOptions, string[]])[] = [
      [undefined, {}, []],
      [undefined, { json: true }, []],
      [80, { json: true }, []],
      [undefined, { progress: true }, ['counting t: 7 rows, 1 s\n', 'counting t: 7 rows, 3 s\n']],
      [
        80,
        { progress: true, json: true },
        [
          '{"progress":{"message":"counting t: 7 rows, 1 s"}}\n',
          '{"progress":{"message":"counting t: 7 rows, 3 s"}}\n',
        ],
      ],
    ];
    for (const [columns, options, expected] of cases) {
      const { clock, told, end, ended } = start(columns, options);
      clock.advance(2600);
      end();
      await ended;
      assert.deepEqual(told, expected, JSON.stringify(options));
    }
  });

  test('work that fails removes its line too', async () => {
    const { clock, told, end, ended } = start(80, {});
    clock.advance(600);
    end(new Error('no'));
    await assert.rejects(ended, /no/);
    assert.equal(told.at(-1), '\r\x1b[K');
  });

  test('short work shows nothing at all', async () => {
    const { told, end, ended } = start(80, {});
    end();
    await ended;
    assert.deepEqual(told, []);
  });
});
