/**
 * Requests that are made from the API's descriptors: the good request of each of the 84 calls with one field damaged
 * (missing, a wrong name, a huge number, nested deep, bytes that are not UTF-8), and random ones. Each is answered with
 * a documented status, and the server serves afterwards and holds none of their bytes.
 *
 * `npm run hostile` sends more of them, to a server in a process of its own. EDUBBA_HOSTILE_SEED: other random ones.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openDatabase } from '../../boot/index.ts';
import { ByteBudget, requestContext, silentLogger } from '../../env/index.ts';
import { startServer } from '../../server/index.ts';
import { wireClientOf } from '../../../test/behaviour/doors.ts';
import { METHODS, STEPS, takeStep } from './every-call/fixtures.ts';
import { apiClientOf } from './fixtures.ts';
import { type Damage, everyDamage } from './hostile/fixtures.ts';
import { attack, type Target } from './hostile-run/fixtures.ts';

const COUNT = 2520;
/** Calls whose good request has a place for a number or for one of a list of words. */
const MIN_WITH_NUMBERS = 35;
/** What the fields of each request allow; numbers are in some of them. Those that open a session have nothing set. */
const DAMAGES: readonly Damage[] = ['missing field', 'wrong name', 'bad UTF-8', 'deep nesting'];
const SESSION = /^Open/;

describe('requests made from the descriptors', () => {
  const seed = Number(process.env.EDUBBA_HOSTILE_SEED ?? 1);
  const errors: string[] = [];
  let opened: Awaited<ReturnType<typeof openDatabase>>;
  let server: Awaited<ReturnType<typeof startServer>>;
  let target: Target;

  before(async () => {
    const logger = { ...silentLogger, error: (text: string) => void errors.push(text) };
    opened = await openDatabase({ memory: true, logger });
    server = await startServer({ service: opened.service, env: opened.env, address: '127.0.0.1:0' });
    const context = requestContext({ budget: new ByteBudget(1 << 30) });
    const door = { address: server.address, context };
    target = { wire: wireClientOf(door), api: apiClientOf(door), context: () => context };
  });
  after(async () => {
    target.api.close();
    target.wire.close();
    await server.close();
    await opened.close();
  });

  test('each call gets every damage that its fields allow', () => {
    let [count, withNumbers] = [0, 0];
    for (const method of METHODS) {
      const made = [...everyDamage(method)];
      const damages = new Set(made.map(({ damage }) => damage));
      for (const damage of SESSION.test(method.name) ? [] : DAMAGES)
        assert.ok(damages.has(damage), `${method.name}: ${damage}`);
      count += made.length;
      withNumbers += damages.has('huge number') ? 1 : 0;
    }
    assert.ok(withNumbers >= MIN_WITH_NUMBERS, `${withNumbers} calls`);
    assert.ok(count < COUNT, `${count} damages are among the ${COUNT} requests`);
  });

  test(`each of the 84 calls answers them with a documented status, from seed ${seed}`, async () => {
    const { wrong, sent, calls } = await attack(target, { count: COUNT, seed });
    assert.deepEqual(wrong, []);
    assert.equal(sent, COUNT);
    assert.ok(calls.size >= 50, `${calls.size} of the calls are answered OK at least once`);
    const [first] = STEPS;
    assert.equal((await takeStep(first!, target.api, { consistencyToken: '' })).word, 'ALREADY_EXISTS');
    const { requestBudget } = opened.env;
    for (let turns = 0; requestBudget.usedBytes > 0 && turns < 1000; turns++)
      await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([requestBudget.usedBytes, requestBudget.waiting], [0, 0]);
    assert.deepEqual(errors, [], 'faults of our own');
  });
});
