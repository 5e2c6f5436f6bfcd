import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { moduleUrl } from '../boot/index.ts';

/** A program that only awaits the given call; returns how it ended. */
function run(body: string): { readonly status: number | null; readonly out: string } {
  const from = (path: string): string => JSON.stringify(moduleUrl(path, import.meta.url).href);
  const source = `
    import { open } from ${from('./index.ts')};
    import { Calls } from ${from('./calls/calls.ts')};
    import { KeepAlive } from ${from('../boot/index.ts')};
    import { ByteBudget } from ${from('../env/index.ts')};
    const env = { requestBudget: new ByteBudget(1) };
    /** Waits like the library: on a timer that lets the process end. */
    const wait = (_service, _context, delayMs = 20) =>
      new Promise((resolve) => setTimeout(() => resolve('waited'), delayMs).unref());
    ${body}`;
  const { status, stdout } = spawnSync(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', source], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  return { status, out: stdout };
}

/** Node's exit code: the program ended while its main module awaited a promise. */
const UNSETTLED = 13;

describe('a program that only awaits the library', () => {
  test('continues while a call is awaited, and while several are', () => {
    const one = run(`console.log(await new Calls({}, env, new KeepAlive()).read(wait));`);
    assert.deepEqual(one, { status: 0, out: 'waited\n' });
    const several = run(`
      const calls = new Calls({}, env, new KeepAlive());
      await Promise.all([calls.read(wait), calls.read(async () => { throw new Error('failed'); }).catch(() => {}), calls.read(() => wait().then(wait))]);
      console.log(await calls.read(wait));`);
    assert.deepEqual(several, { status: 0, out: 'waited\n' });
  });

  test('without KeepAlive it would end', () => {
    // so long that the loader of the program has ended before
    const call = 'new Calls({}, env).read(() => wait({}, {}, 30_000))';
    assert.deepEqual(run(`console.log(await ${call});`), { status: UNSETTLED, out: '' });
  });

  test('ends while a database is open and nothing is awaited', () => {
    const { status, out } = run(`
      const database = await open(':memory:');
      await database.createTable('t', { families: { f: {} } });
      console.log('the end');`);
    assert.deepEqual([status, out], [0, 'the end\n']);
  });
});
