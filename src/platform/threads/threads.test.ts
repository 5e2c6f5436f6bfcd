import assert from 'node:assert/strict';
import { getPriority } from 'node:os';
import { describe, test } from 'node:test';
import { workersOverPort } from '../../../test/contracts/over-port.ts';
import { workersContract } from '../../../test/contracts/workers-contract.ts';
import type { run as die } from '../../../test/contracts/workers-tasks/die.ts';
import type { run as priority } from '../../../test/contracts/workers-tasks/priority.ts';
import type { run as thread } from '../../../test/contracts/workers-tasks/thread.ts';
import { BigtableError, Code } from '../../base/index.ts';
import { ManualClock } from '../../env/index.ts';
import { moduleUrl } from './packages.ts';
import { systemClock } from '../machine/system-clock.ts';
import { ThreadWorkers } from './threads.ts';

const TASKS = Object.fromEntries(
  ['echo', 'sort', 'fail', 'hang', 'die', 'priority', 'thread'].map((name) => [
    name,
    moduleUrl(`../../../test/contracts/workers-tasks/${name}.ts`, import.meta.url),
  ]),
);

workersContract('threads', async () => ({ workers: new ThreadWorkers({ clock: systemClock, size: 2, tasks: TASKS }) }));

workersContract('one thread, over a port', async () => {
  const { proxy, close } = workersOverPort(new ThreadWorkers({ clock: systemClock, size: 1, tasks: TASKS }));
  return { workers: proxy, close: async () => close() };
});

describe('ThreadWorkers', () => {
  test('a thread that dies rejects its own task with INTERNAL, and the pool continues', async () => {
    const workers = new ThreadWorkers({ clock: systemClock, size: 1, tasks: TASKS });
    try {
      for (const [how, why] of [
        ['throw', /"die": its thread died: out of the blue/],
        ['exit', /"die": its thread died: exit code 3/],
      ] as const) {
        const dying = workers.run('die', { how } satisfies Parameters<typeof die>[0]);
        const waiting = workers.run('echo', how);
        await assert.rejects(
          dying,
          (error) => error instanceof BigtableError && error.code === Code.INTERNAL && why.test(error.message),
        );
        assert.equal(await waiting, how);
      }
    } finally {
      await workers.close();
    }
  });

  test('a module that cannot be loaded fails its task alone', async () => {
    const workers = new ThreadWorkers({
      clock: systemClock,
      size: 1,
      tasks: { ...TASKS, missing: new URL('./no-such-module.js', import.meta.url) },
    });
    try {
      await assert.rejects(
        workers.run('missing', 1),
        (error) => error instanceof BigtableError && error.code === Code.INTERNAL,
      );
      assert.equal(await workers.run('echo', 1), 1);
    } finally {
      await workers.close();
    }
  });

  test('tasks yield to the thread that requests them', {
    skip: process.platform !== 'linux' && 'priorities are of the whole process here',
  }, async () => {
    const workers = new ThreadWorkers({ clock: systemClock, size: 1, tasks: TASKS });
    try {
      const before = getPriority(0);
      assert.equal((await workers.run('priority', undefined)) as ReturnType<typeof priority>, Math.min(19, before + 5));
      assert.equal(getPriority(0), before);
    } finally {
      await workers.close();
    }
  });

  test('a thread that has been idle for half a minute ends, and the next task starts another', async () => {
    const clock = new ManualClock();
    const workers = new ThreadWorkers({ clock, size: 1, tasks: TASKS });
    const threadOfTask = async () => (await workers.run('thread', undefined)) as ReturnType<typeof thread>;
    try {
      const first = await threadOfTask();
      clock.advance(29_000);
      assert.equal(await threadOfTask(), first);
      clock.advance(29_000);
      assert.equal(await threadOfTask(), first, 'a task restarts the idle time');
      clock.advance(30_000);
      assert.notEqual(await threadOfTask(), first);
    } finally {
      await workers.close();
    }
  });

  test('a pool has at least one thread', () => {
    for (const size of [0, -1, 1.5, Number.NaN])
      assert.throws(() => new ThreadWorkers({ clock: systemClock, size, tasks: {} }), /a pool of/);
  });
});
