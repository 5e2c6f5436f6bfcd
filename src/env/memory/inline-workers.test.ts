import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { workersOverPort } from '../../../test/contracts/over-port.ts';
import { workersContract } from '../../../test/contracts/workers-contract.ts';
import * as echo from '../../../test/contracts/workers-tasks/echo.ts';
import * as fail from '../../../test/contracts/workers-tasks/fail.ts';
import * as hang from '../../../test/contracts/workers-tasks/hang.ts';
import * as sort from '../../../test/contracts/workers-tasks/sort.ts';
import { InlineWorkers } from './inline-workers.ts';

const TASKS = { echo: echo.run, fail: fail.run, hang: hang.run, sort: sort.run };

workersContract('in line', async () => ({ workers: new InlineWorkers(TASKS) }));

workersContract('in line, over a port', async () => {
  const { proxy, close } = workersOverPort(new InlineWorkers(TASKS));
  return { workers: proxy, close: async () => close() };
});

describe('InlineWorkers', () => {
  test('a task does not run inside the call', async () => {
    let ran = false;
    const workers = new InlineWorkers({
      mark: () => {
        ran = true;
      },
    });
    const running = workers.run('mark', 1);
    assert.equal(ran, false);
    await running;
    assert.equal(ran, true);
  });

  test('tasks of names that every object has are unknown too', async () => {
    await assert.rejects(new InlineWorkers(TASKS).run('toString', 1), /not found/);
  });
});
