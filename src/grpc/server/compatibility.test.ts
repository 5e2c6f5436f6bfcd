/**
 * Every call of the API with a good request, and every filter, mutation, aggregate, garbage-collection rule and limit,
 * on each kind of server. What each does is recorded in test/interop/baselines/api.txt, of which docs/COMPATIBILITY.md
 * is made (scripts/compatibility.mjs).
 *
 * WRITE_GOLDEN=1 records anew.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { openDatabase } from '../../boot/index.ts';
import { ByteBudget, requestContext } from '../../env/index.ts';
import { startServer } from '../../server/index.ts';
import { DOORS, type OpenDoor } from '../../../test/behaviour/doors.ts';
import { METHODS, nameOf, STEPS } from './every-call/fixtures.ts';
import { FILTER_KINDS, MUTATION_KINDS, PROBES, RULE_KINDS } from './every-feature/fixtures.ts';
import { type ApiClient, apiClientOf } from './fixtures.ts';
import { type Opened, probeCalls, probeFeatures, probeLimits } from './compatibility/fixtures.ts';

const RECORDED = join(process.cwd(), 'test/interop/baselines/api.txt');
/** The calls of sessions, which clients use only where a server says that it has some, are refused. */
const REFUSED = /Open/;

function recorded(kinds: RegExp, seen: readonly string[]): string[] {
  const lines = readFileSync(RECORDED, 'utf8').trimEnd().split('\n');
  if (process.env.WRITE_GOLDEN !== '1') return lines.filter((line) => kinds.test(line));
  const others = lines.filter((line) => line !== '' && !kinds.test(line));
  writeFileSync(RECORDED, `${[...others, ...seen].sort().join('\n')}\n`);
  return [...seen].sort();
}

test('each call of the descriptors has a good request, and each kind of filter, mutation and rule a probe', () => {
  const taken = STEPS.map(({ method }) => nameOf(method));
  assert.deepEqual(taken.toSorted(), METHODS.map(nameOf).toSorted());
  for (const [section, kinds] of [
    ['filter', FILTER_KINDS],
    ['mutation', MUTATION_KINDS],
    ['rule', RULE_KINDS],
  ] as const) {
    const probed = PROBES.filter((probe) => probe.section === section).map(({ name }) => name);
    assert.deepEqual(probed.toSorted(), [...kinds.values()].toSorted());
  }
});

for (const { name, open } of DOORS.filter((door) => door.isServer)) {
  describe(`the whole API: ${name}`, () => {
    let door: OpenDoor;
    let api: ApiClient;
    before(async () => {
      // deleted tables are kept, as by `edubba serve`
      door = await open({ keepDeletedMs: 86_400_000 });
      api = apiClientOf(door);
    });
    after(async () => {
      api.close();
      await door.close();
    });
    const opened = async (): Promise<Opened> => ({ api, close: async () => {} });

    test('each call does what its definition says, or says that it is not implemented', async () => {
      const lines: string[] = [];
      const wrong: string[] = [];
      for (const { line, word, detail } of await probeCalls(opened)) {
        lines.push(line);
        const isAsWanted = word === 'works' || word === 'UNIMPLEMENTED' || REFUSED.test(line);
        if (!isAsWanted) wrong.push(`${line}: ${detail}`);
      }
      assert.deepEqual(wrong, []);
      assert.deepEqual(lines.sort(), recorded(/^call /, lines));
    });

    test('each filter, mutation, aggregate and rule has its effect', async () => {
      const seen = await probeFeatures(opened);
      assert.deepEqual(
        seen.filter(({ word }) => word !== 'works').map(({ line, detail }) => `${line}: ${detail}`),
        [],
      );
      const lines = seen.map(({ line }) => line).sort();
      assert.deepEqual(lines, recorded(/^(filter|mutation|aggregate|rule) /, lines));
    });
  });
}

for (const limits of ['default', 'cloud'] as const)
  test(`the ${limits} limits are those that are recorded, those of large requests by default`, async () => {
    const { service, env, close } = await openDatabase({ memory: true, settings: { limits } });
    const server = await startServer({ service, env, address: '127.0.0.1:0' });
    const api = apiClientOf({ address: server.address, context: requestContext({ budget: new ByteBudget(1 << 30) }) });
    const section = limits === 'default' ? 'limit' : 'cloud-limit';
    const large = limits === 'default';
    try {
      const lines = (await probeLimits({ api }, { section, large })).map(({ line }) => line).sort();
      assert.deepEqual(lines, recorded(new RegExp(`^${section} `), lines));
    } finally {
      api.close();
      await server.close();
      await close();
    }
  });
