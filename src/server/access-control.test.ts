import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { addToken, removeTokens } from '../auth/index.ts';
import { Code } from '../base/index.ts';
import { ManualClock, silentLogger } from '../env/index.ts';
import { type AccessControl, openAccessControl } from './access-control.ts';

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1));
const KEYS = JSON.stringify({ keys: [] });

const ask = async (
  access: AccessControl,
  token?: string,
  path = '/google.bigtable.v2.Bigtable/ReadRows',
): Promise<string> =>
  access.authenticate({
    path,
    header: () => (token === undefined ? undefined : `Bearer ${token}`),
    certificate: undefined,
  });

describe('access control', () => {
  let directory = '';
  const logged: string[] = [];
  const logger = {
    ...silentLogger,
    info: (message: string) => void logged.push(message),
    warn() {},
    error: (message: string) => void logged.push(message),
  };
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'edubba-access-'));
  });
  after(() => rm(directory, { recursive: true }));

  /** Lets a check of the files end, has the next one begin, and lets that end. */
  const checkFiles = async (clock: ManualClock): Promise<void> => {
    for (let i = 0; i < 2; i++) {
      while (clock.nextTimerMs() === Number.POSITIVE_INFINITY) await turn();
      if (i === 0) clock.advance(10_000 - (clock.monotonicMs() % 10_000));
    }
  };

  test('is open where nothing is configured', async () => {
    const access = await openAccessControl({}, false, { clock: new ManualClock(), logger });
    assert.equal(await ask(access), 'anonymous');
    access.close();
  });

  test('lets callers without a token check the health and nothing else', async () => {
    const tokensFile = join(directory, 'health.txt');
    await addToken(tokensFile, 'alice', '-');
    const access = await openAccessControl({ tokensFile }, false, { clock: new ManualClock(), logger });
    assert.equal(await ask(access, undefined, '/grpc.health.v1.Health/Check'), 'anonymous');
    for (const path of [
      '/grpc.health.v1.Health/Watch',
      '/grpc.health.v1.Health/List',
      '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
      '/google.bigtable.v2.Bigtable/PingAndWarm',
      '/edubba.v1.Control/CompactTables',
      '/edubba.v1.Control/GetCounters',
      '/x',
      '/grpc.health.v1.Health/check',
    ]) {
      await assert.rejects(ask(access, undefined, path), { code: Code.UNAUTHENTICATED }, path);
    }
    access.close();
  });

  test('tokens that are added or removed count from the next check of the file; a broken file changes nothing', async () => {
    const clock = new ManualClock();
    const tokensFile = join(directory, 'tokens.txt');
    const alice = await addToken(tokensFile, 'alice', '-');
    const access = await openAccessControl({ tokensFile }, false, { clock, logger });
    await checkFiles(clock);
    const bob = await addToken(tokensFile, 'bob', '-');
    assert.equal(await ask(access, alice), 'token:alice');
    await assert.rejects(ask(access, bob), { code: Code.UNAUTHENTICATED });
    await checkFiles(clock);
    assert.equal(await ask(access, bob), 'token:bob');
    await removeTokens(tokensFile, 'alice');
    await checkFiles(clock);
    await assert.rejects(ask(access, alice), { code: Code.UNAUTHENTICATED });
    assert.match(logged.at(-1) ?? '', /^tokens reloaded/);
    for (const spoil of [() => writeFile(tokensFile, 'nonsense'), () => rm(tokensFile)]) {
      const before = logged.length;
      await spoil();
      await checkFiles(clock);
      assert.match(logged.at(-1) ?? '', /cannot reload/);
      await checkFiles(clock);
      assert.equal(logged.length, before + 1, 'logged once');
      assert.equal(await ask(access, bob), 'token:bob');
    }
    await addToken(tokensFile, 'carol', '-');
    await checkFiles(clock);
    await assert.rejects(ask(access, bob), { code: Code.UNAUTHENTICATED });
    access.close();
    clock.advance(100_000);
    assert.equal(clock.nextTimerMs(), Number.POSITIVE_INFINITY);
  });

  test('the keys of an issuer are reloaded too', async () => {
    const clock = new ManualClock();
    const keys = join(directory, 'keys.json');
    await writeFile(keys, KEYS);
    const access = await openAccessControl({ jwt: { issuer: 'i', audience: 'a', keys } }, false, { clock, logger });
    await checkFiles(clock);
    await writeFile(keys, `${KEYS}\n`);
    await checkFiles(clock);
    assert.match(logged.at(-1) ?? '', /^keys reloaded/);
    await writeFile(keys, '{');
    await checkFiles(clock);
    assert.match(logged.at(-1) ?? '', /^cannot reload keys/);
    await assert.rejects(ask(access, 'a.b.c'), { code: Code.UNAUTHENTICATED });
    access.close();
  });

  test('an invalid file keeps the server from starting', async () => {
    const env = { clock: new ManualClock(), logger };
    await assert.rejects(openAccessControl({ tokensFile: join(directory, 'none') }, false, env), {
      code: Code.NOT_FOUND,
      message: /edubba token add/,
    });
    await assert.rejects(
      openAccessControl({ jwt: { issuer: 'i', audience: 'a', keys: join(directory, 'none') } }, false, env),
      {
        code: Code.INVALID_ARGUMENT,
        message: /cannot read/,
      },
    );
    await assert.rejects(
      openAccessControl({ jwt: { issuer: 'i', audience: 'a', keys: 'http://example.org/keys' } }, false, env),
      { code: Code.INVALID_ARGUMENT, message: /https/ },
    );
  });
});
