/**
 * The contract of every LockService, as tests (src/env/seams/lock-service.ts). Each test has a service of its own,
 * empty at the beginning.
 *
 * `endSession` ends a session the way the adapter can: by expiry where a test can bring that about, else by closing it.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code, codeName } from '../../src/base/index.ts';
import {
  type LockEvent,
  type LockHandle,
  type LockService,
  listFiles,
  ManualClock,
  MAX_PAGE_BYTES,
  removeSettled,
  writeSettled,
} from '../../src/env/index.ts';
import { losingAnswers } from './lost-answers.ts';

export interface LockServiceUnderTest {
  readonly service: LockService;
  /** Another adapter to the same service, as another process has it. */
  readonly other: LockService;
  readonly endSession: (sessionId: string) => Promise<void>;
  readonly close?: () => Promise<void>;
}

type Body = (service: LockService, subject: LockServiceUnderTest) => Promise<void>;
type Contract = (title: string, body: Body) => void;

export function lockServiceContract(name: string, make: () => Promise<LockServiceUnderTest>): void {
  const contract: Contract = (title, body) => {
    test(title, async () => {
      const subject = await make();
      try {
        await body(subject.service, subject);
      } finally {
        await subject.close?.();
      }
    });
  };
  describe(`lock service contract: ${name}`, () => {
    describe('files', () => filesHaveVersions(contract));
    describe('guards', () => guardsHold(contract));
    describe('sessions and locks', () => locksBelongToSessions(contract));
    describe('watches', () => watchersSeeEveryChange(contract));
    describe('two clients', () => clientsShareOneService(contract));
    describe('lost answers', () => callsMayBeSentAgain(contract));
    describe('all together', () => behavesLikeItsModel(contract));
  });
}

const TABLE = 'schemas/projects/p/instances/i/tables/t';

function filesHaveVersions(contract: Contract): void {
  contract('a file reads back with the version of its write', async (service) => {
    assert.equal(await service.read('a'), undefined);
    const version = await service.write('a', bytes('one'));
    assert.ok(Number.isSafeInteger(version) && version > 0);
    assert.deepEqual(await service.read('a'), { path: 'a', contents: bytes('one'), version });
    await service.write('a', bytes(''));
    assert.deepEqual((await service.read('a'))?.contents, bytes(''));
  });

  contract('versions grow with every change and are never reused, not even after a deletion', async (service) => {
    const versions: number[] = [];
    for (let i = 0; i < 5; i++) {
      versions.push(await service.write('a', bytes(`${i}`)));
      versions.push(await service.write('a', bytes(`${i}`)));
      assert.equal(await service.remove('a'), true);
    }
    for (let i = 1; i < versions.length; i++)
      assert.ok((versions[i] as number) > (versions[i - 1] as number), `${versions}`);
  });

  contract('removing tells whether there was a file', async (service) => {
    assert.equal(await service.remove('a'), false);
    await service.write('a', bytes('x'));
    assert.equal(await service.remove('a'), true);
    assert.equal(await service.remove('a'), false);
    assert.equal(await service.read('a'), undefined);
  });

  contract('a creation can be refused because a file of its directory was removed since', async (service) => {
    const create = (path: string, noRemovalAfter: number) =>
      service.write(path, bytes('x'), { version: 0, noRemovalAfter });
    await service.write('d/a', bytes('x'));
    await service.write('e', bytes('x'));
    const before = await service.lastRemoval('d/a');
    assert.equal(await service.lastRemoval('d/b/c'), before);
    await service.remove('d/a');
    const after = await service.lastRemoval('d/a');
    assert.ok(after > before, `${after} follows ${before}`);
    for (const path of ['d/a', 'd/b', 'd/b/c']) await assert.rejects(create(path, before), { code: Code.ABORTED });
    assert.equal(await service.read('d/a'), undefined);
    await create('d/a', after);
    await assert.rejects(create('d/a', after), { code: Code.ABORTED });
    // another directory, and none
    await create('f/a', await service.lastRemoval('f/a'));
    const ofRoot = await service.lastRemoval('e');
    await service.remove('e');
    assert.ok((await service.lastRemoval('e')) > ofRoot);
    assert.equal(await service.lastRemoval('d/a'), after);
    await create('d/c', after);
  });

  contract('a list shows the files that begin with the prefix, by path', async (service) => {
    for (const path of ['servers/b', 'servers/a', 'serversX', 'root', TABLE]) await service.write(path, bytes(path));
    const paths = async (prefix: string): Promise<string[]> => (await service.list(prefix)).map(({ path }) => path);
    assert.deepEqual(await paths('servers/'), ['servers/a', 'servers/b']);
    assert.deepEqual(await paths('servers'), ['servers/a', 'servers/b', 'serversX']);
    assert.deepEqual(await paths('schemas/projects/p/'), [TABLE]);
    assert.deepEqual(await paths(''), ['root', TABLE, 'servers/a', 'servers/b', 'serversX']);
    assert.deepEqual(await paths('x'), []);
    const [root] = await service.list('root');
    assert.deepEqual(root, await service.read('root'));
  });

  contract('a long list comes in pages', async (service) => {
    const paths = Array.from({ length: 7 }, (_, i) => `p/${i}`);
    for (const path of paths) await service.write(path, new Uint8Array(path === 'p/3' ? MAX_PAGE_BYTES : 300_000));
    await service.write('q', bytes('x'));
    const first = await service.list('p/');
    assert.ok(first.length > 0 && first.length < 4, `${first.length} files`);
    assert.deepEqual(
      (await service.list('p/', 'p/2')).map(({ path }) => path),
      ['p/3'],
    );
    assert.deepEqual(await service.list('p/', 'p/6'), []);
    assert.deepEqual(
      (await listFiles(service, 'p/')).map(({ path }) => path),
      paths,
    );
    assert.equal((await listFiles(service, '')).length, 8);
  });

  contract('paths are any text in parts', async (service) => {
    const paths = [
      'a b',
      'a:b',
      'ä/ö/ü',
      '日本',
      '..',
      '.',
      'a%2Fb',
      'A',
      'a',
      '\u0001',
      '😀',
      `long/${'x'.repeat(600)}`,
      `${'y/'.repeat(300)}z`,
    ];
    for (const path of paths) await service.write(path, bytes(path));
    for (const path of paths) assert.equal(text((await service.read(path))?.contents), path);
    assert.equal((await service.list('')).length, paths.length);
    for (const path of ['', '/', '/a', 'a/', 'a//b', '\ud800', 'x'.repeat(5000)]) {
      await fails(service.write(path, bytes('x')), Code.INVALID_ARGUMENT);
      await fails(service.read(path), Code.INVALID_ARGUMENT);
      await fails(service.remove(path), Code.INVALID_ARGUMENT);
    }
  });

  contract('contents are copied in and out', async (service) => {
    const given = bytes('abc');
    const writing = service.write('a', given);
    given.fill(0);
    await writing;
    const got = await service.read('a');
    assert.equal(text(got?.contents), 'abc');
    (got?.contents as Uint8Array).fill(0);
    (await service.list(''))[0]?.contents.fill(0);
    assert.equal(text((await service.read('a'))?.contents), 'abc');
  });

  contract('contents of 1 MiB are kept, larger ones refused', async (service) => {
    const most = new Uint8Array(1024 * 1024).fill(7);
    await service.write('a', most);
    assert.deepEqual((await service.read('a'))?.contents, most);
    const error = await fails(service.write('a', new Uint8Array(1024 * 1024 + 1)), Code.INVALID_ARGUMENT);
    assert.match(error.message, /1048577 .* 1048576/);
    assert.equal((await service.read('a'))?.contents.length, 1024 * 1024);
  });
}

function guardsHold(contract: Contract): void {
  contract('a write or a removal by version happens only at that version', async (service) => {
    await fails(service.write('a', bytes('x'), { version: 5 }), Code.ABORTED);
    const first = await service.write('a', bytes('one'), { version: 0 });
    await fails(service.write('a', bytes('x'), { version: 0 }), Code.ABORTED);
    const second = await service.write('a', bytes('two'), { version: first });
    await fails(service.write('a', bytes('x'), { version: first }), Code.ABORTED);
    await fails(service.remove('a', { version: first }), Code.ABORTED);
    assert.deepEqual(await service.read('a'), { path: 'a', contents: bytes('two'), version: second });
    assert.equal(await service.remove('a', { version: second }), true);
    assert.equal(await service.remove('a', { version: 0 }), false);
    await fails(service.remove('a', { version: second }), Code.ABORTED);
  });

  contract('of many that write at one version exactly one wins', async (service) => {
    let version = 0;
    for (let round = 0; round < 5; round++) {
      const outcomes = await Promise.allSettled(
        Array.from({ length: 8 }, (_, i) => service.write('a', bytes(`${i}`), { version })),
      );
      const winners = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
      assert.equal(winners.length, 1);
      assert.equal((await service.read('a'))?.version, winners[0]);
      version = winners[0] as number;
    }
  });

  contract('a change under a lock happens only while the lock is held in that epoch', async (service, subject) => {
    const session = await service.openSession();
    const other = await service.openSession();
    const lock = await acquire(service, 'locks/master', session);
    const version = await service.write('a', bytes('x'), { lock });
    await fails(service.write('a', bytes('y'), { lock: { ...lock, epoch: lock.epoch + 1 } }), Code.ABORTED);
    await fails(service.write('a', bytes('y'), { lock: { ...lock, sessionId: other } }), Code.ABORTED);
    await fails(service.write('a', bytes('y'), { lock: { ...lock, path: 'locks/other' } }), Code.ABORTED);
    await subject.endSession(session);
    await fails(service.write('a', bytes('y'), { lock }), Code.ABORTED);
    await fails(service.remove('a', { lock }), Code.ABORTED);
    const later = await acquire(service, 'locks/master', other);
    await fails(service.write('a', bytes('y'), { lock }), Code.ABORTED);
    assert.equal((await service.read('a'))?.version, version);
    await service.write('a', bytes('z'), { lock: later, version });
    await fails(service.write('a', bytes('y'), { lock: later, version }), Code.ABORTED);
    assert.equal(text((await service.read('a'))?.contents), 'z');
  });
}

function locksBelongToSessions(contract: Contract): void {
  contract('sessions have ids of their own and leases that hold until they end', async (service, subject) => {
    const ids = await Promise.all(Array.from({ length: 10 }, () => service.openSession()));
    assert.equal(new Set(ids).size, 10);
    const [one, two] = ids as [string, string];
    assert.equal(service.leaseHolds(one), true);
    await service.closeSession(one);
    await subject.endSession(two);
    await service.read('a');
    assert.equal(service.leaseHolds(one), false);
    assert.equal(service.leaseHolds(two), false);
    assert.equal(service.leaseHolds('no such session'), false);
    await service.closeSession(one);
    await service.closeSession('no such session');
  });

  contract('a lock has one holder', async (service) => {
    const [one, two] = [await service.openSession(), await service.openSession()];
    assert.equal(await service.holder('l'), undefined);
    const lock = await acquire(service, 'l', one);
    assert.deepEqual([lock.path, lock.sessionId], ['l', one]);
    assert.deepEqual(await service.holder('l'), lock);
    assert.equal(await service.tryAcquire('l', two), undefined);
    assert.deepEqual(await service.tryAcquire('l', one), lock);
    assert.equal((await acquire(service, 'l/m', two)).sessionId, two);
    await service.release(lock);
    assert.equal(await service.holder('l'), undefined);
    assert.equal((await acquire(service, 'l', two)).sessionId, two);
  });

  contract('the locks that are held under a prefix are listed by path', async (service, subject) => {
    const [one, two] = [await service.openSession(), await service.openSession()];
    assert.deepEqual(await service.holders(''), []);
    const locks = [];
    for (const path of ['l/b', 'l/a', 'l\u{1f600}', 'm']) locks.push(await acquire(service, path, one));
    const [b, a, smile, m] = locks;
    await service.write('l/file', bytes('f'));
    const c = await acquire(service, 'l/c', two);
    assert.deepEqual(await service.holders('l/'), [a, b, c]);
    assert.deepEqual(await service.holders(''), [a, b, c, smile, m]);
    await service.release(b!);
    await subject.endSession(two);
    assert.deepEqual(await service.holders('l/'), [a]);
    assert.deepEqual(await service.holders('l/a'), [a]);
    assert.deepEqual(await service.holders('n'), []);
  });

  contract('of many that take a lock exactly one gets it', async (service) => {
    const sessions = await Promise.all(Array.from({ length: 6 }, () => service.openSession()));
    const got = (await Promise.all(sessions.map((session) => service.tryAcquire('l', session)))).filter(
      (lock) => lock !== undefined,
    );
    assert.equal(got.length, 1);
    assert.deepEqual(await service.holder('l'), got[0]);
  });

  contract('a later holder has a greater epoch, and an old handle releases nothing', async (service, subject) => {
    const epochs: number[] = [];
    let old: LockHandle | undefined;
    for (let i = 0; i < 5; i++) {
      const session = await service.openSession();
      const lock = await acquire(service, 'l', session);
      epochs.push(lock.epoch);
      if (old) await service.release(old);
      assert.deepEqual(await service.holder('l'), lock);
      if (i % 2 === 0) await service.release(lock);
      else await subject.endSession(session);
      old = lock;
    }
    for (let i = 1; i < epochs.length; i++) assert.ok((epochs[i] as number) > (epochs[i - 1] as number), `${epochs}`);
  });

  contract('with a session go its locks and its files, and no others', async (service, subject) => {
    const [mine, yours] = [await service.openSession(), await service.openSession()];
    await acquire(service, 'l/mine', mine);
    const yourLock = await acquire(service, 'l/yours', yours);
    await service.write('servers/mine', bytes('m'), { sessionId: mine });
    await service.write('servers/yours', bytes('y'), { sessionId: yours });
    await service.write('lasting', bytes('l'));
    assert.equal((await service.read('servers/mine'))?.sessionId, mine);
    assert.equal(Object.hasOwn((await service.read('lasting')) ?? {}, 'sessionId'), false);
    await subject.endSession(mine);
    assert.deepEqual(
      (await service.list('')).map(({ path }) => path),
      ['lasting', 'servers/yours'],
    );
    assert.equal(await service.holder('l/mine'), undefined);
    assert.deepEqual(await service.holder('l/yours'), yourLock);
    await service.closeSession(yours);
    assert.deepEqual(
      (await service.list('')).map(({ path }) => path),
      ['lasting'],
    );
    assert.equal(await service.holder('l/yours'), undefined);
  });

  contract(
    'a file that becomes lasting outlives its session, one that becomes ephemeral does not',
    async (service, subject) => {
      const session = await service.openSession();
      await service.write('a', bytes('1'), { sessionId: session });
      await service.write('b', bytes('1'));
      await service.write('a', bytes('2'));
      await service.write('b', bytes('2'), { sessionId: session });
      await subject.endSession(session);
      assert.deepEqual(
        (await service.list('')).map(({ path }) => path),
        ['a'],
      );
    },
  );

  contract('a session that has ended takes no lock and owns no file', async (service, subject) => {
    const session = await service.openSession();
    await subject.endSession(session);
    for (const sessionId of [session, 'no such session']) {
      await fails(service.tryAcquire('l', sessionId), Code.FAILED_PRECONDITION);
      await fails(service.write('a', bytes('x'), { sessionId }), Code.FAILED_PRECONDITION);
    }
    assert.deepEqual(await service.list(''), []);
  });
}

function watchersSeeEveryChange(contract: Contract): void {
  contract('every change under the prefix is an event, in order', async (service) => {
    const seen = new Events(service, 'a/');
    const versions = [await service.write('a/x', bytes('1')), await service.write('a/x', bytes('2'))];
    await service.write('b', bytes('1'));
    await fails(service.write('a/x', bytes('3'), { version: 0 }), Code.ABORTED);
    await service.remove('a/none');
    await service.remove('a/x');
    versions.push(await service.write('a/y', bytes('1')));
    assert.deepEqual(await seen.take(4), [
      { kind: 'changed', path: 'a/x', version: versions[0] },
      { kind: 'changed', path: 'a/x', version: versions[1] },
      { kind: 'deleted', path: 'a/x' },
      { kind: 'changed', path: 'a/y', version: versions[2] },
    ]);
    assert.equal(await seen.nothingBesides(service, 'a/marker'), true);
  });

  contract('a listener runs neither inside the call that watches nor in one that changes', async (service) => {
    let inside = true;
    const calledInside: boolean[] = [];
    const changed = new Promise<void>((resolve) => {
      service.watch('', ({ kind }) => {
        calledInside.push(inside);
        if (kind === 'changed') resolve();
      });
    });
    const writing = service.write('a', bytes('x'));
    inside = false;
    await changed;
    assert.deepEqual(calledInside, [false, false]);
    await writing;
  });

  contract('the end of a session is an event: locks lost, ephemeral files deleted', async (service, subject) => {
    const session = await service.openSession();
    await acquire(service, 's/lock', session);
    await service.write('s/file', bytes('x'), { sessionId: session });
    const seen = new Events(service, 's/');
    // the session is ended behind the service's back: a call of its own lets the watch arrive before that
    await service.read('s/file');
    await subject.endSession(session);
    const told = await seen.take(2);
    assert.deepEqual(
      told.sort((a, b) => (a.kind < b.kind ? -1 : 1)),
      [
        { kind: 'deleted', path: 's/file' },
        { kind: 'lock-lost', path: 's/lock', sessionId: session },
      ],
    );
  });

  contract('a release is an event for those who wait for the lock', async (service) => {
    const [one, two] = [await service.openSession(), await service.openSession()];
    const lock = await acquire(service, 'l', one);
    const seen = new Events(service, 'l');
    assert.equal(await service.tryAcquire('l', two), undefined);
    await service.release(lock);
    await service.release(lock);
    assert.deepEqual(await seen.take(1), [{ kind: 'lock-lost', path: 'l', sessionId: one }]);
    await acquire(service, 'l', two);
    assert.equal(await seen.nothingBesides(service, 'l/marker'), true);
  });

  contract('a watch that was stopped hears nothing more, the others go on', async (service) => {
    const stopped = new Events(service, '');
    const other = new Events(service, '');
    await service.write('a', bytes('1'));
    await stopped.take(1);
    stopped.stop();
    stopped.stop();
    await service.write('a', bytes('2'));
    await service.write('a', bytes('3'));
    await other.take(3);
    assert.equal(stopped.count, 1);
  });

  contract('a watcher sees of one file no version before an older one', async (service) => {
    const seen = new Events(service, '');
    const writes = Array.from({ length: 40 }, (_, i) => service.write(`f${i % 3}`, bytes(`${i}`)));
    await Promise.all(writes);
    const last = new Map<string, number>();
    for (const event of await seen.take(40)) {
      assert.ok(event.kind === 'changed' && event.version > (last.get(event.path) ?? 0));
      last.set(event.path, event.version);
    }
    for (const file of await service.list('')) assert.equal(file.version, last.get(file.path));
  });
}

function clientsShareOneService(contract: Contract): void {
  contract('one reads what the other writes, and of guarded writes by both one happens', async (service, { other }) => {
    let version = await service.write('a', bytes('one'));
    assert.deepEqual(await other.read('a'), { path: 'a', contents: bytes('one'), version });
    for (let round = 0; round < 5; round++) {
      const outcomes = await Promise.allSettled(
        [service, other].map((client, i) => client.write('a', bytes(`${i}`), { version })),
      );
      const [winner, ...more] = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
      assert.ok(winner !== undefined && more.length === 0);
      version = winner;
    }
    assert.equal(await other.remove('a', { version }), true);
    assert.deepEqual(await service.list(''), []);
  });

  contract(
    'a lock of one is refused to the other, with its guards, until its session ends',
    async (service, subject) => {
      const { other } = subject;
      const [one, two] = [await service.openSession(), await other.openSession()];
      const lock = await acquire(service, 'l', one);
      assert.equal(await other.tryAcquire('l', two), undefined);
      assert.deepEqual(await other.holder('l'), lock);
      const version = await other.write('a', bytes('x'), { lock });
      await subject.endSession(one);
      assert.ok((await acquire(other, 'l', two)).epoch > lock.epoch);
      await fails(service.write('a', bytes('y'), { lock }), Code.ABORTED);
      assert.equal((await service.read('a'))?.version, version);
    },
  );

  contract('a watch of one reports the changes of both', async (service, { other }) => {
    const seen = new Events(service, '');
    await service.read('a');
    const versions = [await other.write('a', bytes('1'))];
    versions.push(await service.write('a', bytes('2')));
    await other.remove('a');
    assert.deepEqual(await seen.take(3), [
      { kind: 'changed', path: 'a', version: versions[0] },
      { kind: 'changed', path: 'a', version: versions[1] },
      { kind: 'deleted', path: 'a' },
    ]);
  });
}

/** A call is applied, its answer is lost, and its caller sends it again. */
function callsMayBeSentAgain(contract: Contract): void {
  contract('a lock that was taken is got by the call that is sent again, in the same epoch', async (service) => {
    const session = await service.openSession();
    const lock = await acquire(service, 'l', session);
    assert.deepEqual(await service.tryAcquire('l', session), lock);
    await service.write('a', bytes('x'), { lock });
    await service.release(lock);
    await service.release(lock);
    assert.equal(await service.holder('l'), undefined);
  });

  contract('a release that is sent again releases nothing of a later holder', async (service) => {
    const session = await service.openSession();
    const lock = await acquire(service, 'l', session);
    await service.release(lock);
    const later = await acquire(service, 'l', session);
    assert.ok(later.epoch > lock.epoch);
    await service.release(lock);
    assert.deepEqual(await service.holder('l'), later);
  });

  contract('a guarded change happens once, however often it is sent', async (service) => {
    const clock = new ManualClock();
    const stop = runTimers(clock);
    const losing = losingAnswers(service, () => true);
    const parts = { lockService: losing.service, clock };
    const first = await writeSettled(parts, 'a', bytes('one'), { version: 0 });
    assert.deepEqual(await service.read('a'), { path: 'a', contents: bytes('one'), version: first });
    const second = await writeSettled(parts, 'a', bytes('two'), { version: first });
    assert.equal((await service.read('a'))?.version, second);
    await fails(writeSettled(parts, 'a', bytes('three'), { version: first }), Code.ABORTED);
    await fails(removeSettled(parts, 'a', { version: first }), Code.ABORTED);
    await removeSettled(parts, 'a', { version: second });
    assert.deepEqual(await service.list(''), []);
    assert.ok(losing.lost > 4);
    stop();
  });
}

/** Random calls, one after another, against the plainest model there is. */
function behavesLikeItsModel(contract: Contract): void {
  const paths = ['a', 'a/b', 'c'];
  const step = fc.oneof(
    fc.record({
      call: fc.constant('write' as const),
      path: fc.constantFrom(...paths),
      ephemeral: fc.boolean(),
      guarded: fc.boolean(),
    }),
    fc.record({ call: fc.constant('remove' as const), path: fc.constantFrom(...paths), guarded: fc.boolean() }),
    fc.record({ call: fc.constant('acquire' as const), path: fc.constantFrom(...paths) }),
    fc.record({ call: fc.constant('release' as const), path: fc.constantFrom(...paths) }),
    fc.record({ call: fc.constant('end session' as const) }),
  );

  contract('any sequence of calls answers as the model does', (service, subject) => asTheModel(service, subject));

  contract('so does one in which the answer to any call is lost, and the call sent again', async (service, subject) => {
    const clock = new ManualClock();
    const stop = runTimers(clock);
    await asTheModel(sendingAgain(losingAnswers(service, (call) => call % 3 !== 0).service, clock), subject);
    stop();
  });

  async function asTheModel(service: LockService, subject: LockServiceUnderTest): Promise<void> {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        let session = await service.openSession();
        const files = new Map<string, { version: number; ephemeral: boolean }>();
        const locks = new Map<string, LockHandle>();
        for (const [i, now] of steps.entries()) {
          if (now.call === 'write') {
            const version = now.guarded ? { version: files.get(now.path)?.version ?? 0 } : {};
            const written = await service.write(now.path, bytes(`${i}`), {
              ...version,
              ...(now.ephemeral && { sessionId: session }),
            });
            files.set(now.path, { version: written, ephemeral: now.ephemeral });
          } else if (now.call === 'remove') {
            const version = now.guarded ? { version: files.get(now.path)?.version ?? 0 } : {};
            const removed = await service.remove(now.path, version);
            // a removal that is sent again finds no file
            if (service === subject.service) assert.equal(removed, files.has(now.path));
            files.delete(now.path);
          } else if (now.call === 'acquire') {
            const lock = await acquire(service, now.path, session);
            if (locks.has(now.path)) assert.deepEqual(lock, locks.get(now.path));
            locks.set(now.path, lock);
          } else if (now.call === 'release') {
            const lock = locks.get(now.path);
            if (lock) await service.release(lock);
            locks.delete(now.path);
          } else {
            await subject.endSession(session);
            locks.clear();
            for (const [path, { ephemeral }] of files) if (ephemeral) files.delete(path);
            session = await service.openSession();
          }
          const listed = await service.list('');
          assert.deepEqual(
            listed.map(({ path, version }) => [path, version]),
            [...files]
              .map(([path, { version }]) => [path, version])
              .sort(([a], [b]) => ((a as string) < (b as string) ? -1 : 1)),
          );
          for (const path of paths) assert.deepEqual(await service.holder(path), locks.get(path));
        }
        await service.closeSession(session);
        for (const path of paths) await service.remove(path);
      }),
      { numRuns: 20 },
    );
  }
}

/** Sends each call until it is answered; guarded changes until they are settled. */
function sendingAgain(service: LockService, clock: ManualClock): LockService {
  const parts = { lockService: service, clock };
  return new Proxy(service, {
    get: (target, name: keyof LockService) => {
      const value = target[name] as unknown;
      assert.ok(typeof value === 'function');
      if (name === 'watch' || name === 'leaseHolds') return value.bind(target);
      return async (...args: unknown[]) => {
        const guard = args[name === 'write' ? 2 : 1] as { version?: number; sessionId?: string } | undefined;
        if (guard?.version !== undefined) {
          const { version } = guard;
          if (name === 'remove') return removeSettled(parts, args[0] as string, { ...guard, version });
          return writeSettled(parts, args[0] as string, args[1] as Uint8Array, { ...guard, version });
        }
        for (;;) {
          try {
            return await (value.apply(target, args) as Promise<unknown>);
          } catch (thrown) {
            if (!(thrown instanceof BigtableError && thrown.code === Code.UNAVAILABLE)) throw thrown;
          }
        }
      };
    },
  });
}

/** Fires each timer in the next turn of the event loop. Returns the function that ends this. */
function runTimers(clock: ManualClock): () => void {
  const timer = setInterval(() => {
    const untilMs = clock.nextTimerMs();
    if (untilMs !== Number.POSITIVE_INFINITY) clock.advance(untilMs - clock.monotonicMs());
  }, 0);
  return () => clearInterval(timer);
}

/** The events of a watch so far. */
class Events {
  readonly #seen: LockEvent[] = [];
  readonly stop: () => void;
  #count = 0;
  #arrived: () => void = () => {};

  constructor(service: LockService, prefix: string) {
    let isEstablished = false;
    this.stop = service.watch(prefix, (event) => {
      assert.equal(event.kind === 'established', !isEstablished, 'a watch begins with one event, that it does');
      isEstablished = true;
      if (event.kind === 'established') return;
      this.#count++;
      this.#seen.push(event);
      this.#arrived();
    });
  }

  /** Number of all events sent, read or not. */
  get count(): number {
    return this.#count;
  }

  /** Waits for `count` events and takes them. */
  async take(count: number): Promise<LockEvent[]> {
    while (this.#seen.length < count) {
      await new Promise<void>((resolve) => {
        this.#arrived = resolve;
      });
    }
    return this.#seen.splice(0, count);
  }

  /** True when the next event is that of a file written now. */
  async nothingBesides(service: LockService, path: string): Promise<boolean> {
    const version = await service.write(path, bytes('marker'));
    const [next] = await this.take(1);
    return next?.kind === 'changed' && next.path === path && next.version === version;
  }
}

async function acquire(service: LockService, path: string, sessionId: string): Promise<LockHandle> {
  const lock = await service.tryAcquire(path, sessionId);
  assert.ok(lock, `${path} is free`);
  return lock;
}

function bytes(content: string): Uint8Array {
  return new Uint8Array(Buffer.from(content, 'utf8'));
}

function text(content: Uint8Array | undefined): string | undefined {
  return content && Buffer.from(content).toString('utf8');
}

async function fails(call: Promise<unknown>, code: Code): Promise<BigtableError> {
  const outcome = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(outcome instanceof BigtableError, `expected a BigtableError, not ${outcome}`);
  assert.equal(codeName(outcome.code), codeName(code), outcome.message);
  return outcome;
}
