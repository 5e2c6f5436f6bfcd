import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Code, toBigtableError } from '../../src/base/index.ts';
import { isOutcomeUnknown, writeSettled } from '../../src/env/index.ts';
import { type EtcdLockService, systemClock } from '../../src/platform/index.ts';
import { EtcdCluster } from './etcd-cluster.ts';
import { compact, newPrefix, openAt } from './fixtures.ts';
import { Watched } from './watched.ts';

const bytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text));

/** Adds one to a number in a file, again and again, until it is stopped; returns all versions written. */
function counting(service: EtcdLockService, path: string) {
  let stopped = false;
  const versions: number[] = [];
  const parts = { lockService: service, clock: systemClock };
  const run = async (): Promise<void> => {
    while (!stopped) {
      try {
        const file = await service.read(path);
        const next = Number(Buffer.from(file?.contents ?? bytes('0')).toString()) + 1;
        versions.push(await writeSettled(parts, path, bytes(`${next}`), { version: file?.version ?? 0 }));
      } catch (thrown) {
        assert.ok(isOutcomeUnknown(toBigtableError(thrown)), `${thrown}`);
      }
    }
  };
  const running = run();
  return {
    versions,
    stop: async () => {
      stopped = true;
      await running;
    },
  };
}

/** Resolves when the counter has gone on. */
async function goesOn({ versions }: { readonly versions: readonly number[] }, by = 20): Promise<void> {
  const before = versions.length;
  while (versions.length < before + by) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe('an etcd of three members', () => {
  let etcd: EtcdCluster;
  before(async () => {
    etcd = await EtcdCluster.start({ members: 3 });
  });
  after(() => etcd.close());

  async function withCounter(faults: (count: { versions: number[] }) => Promise<void>): Promise<void> {
    const prefix = newPrefix();
    const [service, other] = [await openAt(etcd.endpoints, prefix), await openAt(etcd.endpoints, prefix)];
    const seen = new Watched(other, '');
    await seen.kind('established');
    const session = await service.openSession();
    const lock = await service.tryAcquire('l', session);
    const count = counting(service, 'counter');
    await goesOn(count);
    await faults(count);
    await count.stop();
    const file = await service.read('counter');
    assert.equal(Buffer.from(file!.contents).toString(), `${count.versions.length}`, 'each number was written once');
    await seen.until((event) => event.kind === 'changed' && event.version === file?.version);
    assert.deepEqual(seen.versionsOf('counter'), count.versions, 'a watch reports each change once, in order');
    assert.equal(service.leaseHolds(session), true, 'the session has outlived the faults');
    assert.deepEqual(await other.holder('l'), lock);
    await service.close();
    await other.close();
  }

  test('each is killed in turn: calls, watches and sessions go on', async () => {
    await withCounter(async (count) => {
      for (const member of etcd.members) {
        await member.kill();
        await goesOn(count);
        member.start();
        await member.ready();
      }
      await goesOn(count);
    });
  });

  test('each is stopped in turn, the leader too, and continues later: late tries change nothing', async () => {
    await withCounter(async (count) => {
      for (const member of etcd.members) {
        await member.stop();
        await goesOn(count, 200);
        member.goOn();
        await goesOn(count);
      }
    });
  });
});

describe('an etcd of one member', () => {
  let etcd: EtcdCluster;
  before(async () => {
    etcd = await EtcdCluster.start();
  });
  after(() => etcd.close());

  test('is stopped in the midst of calls: they are UNAVAILABLE, and what happens late happens once', async () => {
    const service = await openAt(etcd.endpoints, newPrefix());
    const session = await service.openSession();
    const lock = await service.tryAcquire('held', session);
    const version = await service.write('a', bytes('1'));
    await etcd.members[0]!.stop();
    const calls = await Promise.allSettled([
      service.write('a', bytes('2'), { version }),
      service.tryAcquire('l', session),
      service.release(lock!),
      service.remove('none'),
    ]);
    etcd.members[0]?.goOn();
    for (const call of calls)
      assert.ok(call.status === 'rejected' && isOutcomeUnknown(toBigtableError(call.reason)), JSON.stringify(call));
    // refused where the late one was first
    const again = await service.write('a', bytes('2'), { version }).catch(toBigtableError);
    assert.ok(typeof again === 'number' || again.code === Code.ABORTED);
    const taken = await service.tryAcquire('l', session);
    assert.ok(taken !== undefined);
    await service.release(lock!);
    await service.release(taken);
    const read = await service.read('a');
    assert.equal(await service.holder('held'), undefined);
    assert.equal(await service.holder('l'), undefined);
    assert.deepEqual(await service.read('a'), read);
    assert.deepEqual(read?.contents, bytes('2'));
    await service.close();
  });

  test('a page of a list that was begun before a compaction ends there', async () => {
    const service = await openAt(etcd.endpoints, newPrefix());
    const paths = Array.from({ length: 300 }, (_, i) => `f/${`${i}`.padStart(3, '0')}`);
    for (const path of paths) await service.write(path, bytes(path));
    const compacting = (async () => {
      for (let i = 0; i < 50; i++) await compact(etcd, await service.write('g', bytes(`${i}`)));
    })();
    for (let i = 0; i < 50; i++) {
      let after = '';
      const listed: string[] = [];
      for (let page = await service.list('f/'); page.length > 0; page = await service.list('f/', after)) {
        listed.push(...page.map(({ path }) => path));
        after = listed.at(-1)!;
      }
      assert.deepEqual(listed, paths);
    }
    await compacting;
    await service.close();
  });

  test('an adapter that is not closed lets its process end', async () => {
    const program = fileURLToPath(
      new URL(import.meta.url.endsWith('.ts') ? 'leaver.ts' : 'leaver.js', import.meta.url),
    );
    const child = spawn(process.execPath, [
      ...process.execArgv.filter((word) => !word.startsWith('--test')),
      program,
      ...etcd.endpoints,
    ]);
    let said = '';
    child.stderr.on('data', (chunk) => (said += chunk));
    const status = await new Promise((resolve) => child.once('exit', resolve));
    assert.equal(status, 0, said);
  });

  test('calls on an adapter that was closed fail', async () => {
    const service = await openAt(etcd.endpoints, newPrefix());
    await service.close();
    await assert.rejects(service.read('a'), (error: { code?: unknown }) => error.code !== Code.OK);
    await assert.rejects(service.openSession());
  });
});
