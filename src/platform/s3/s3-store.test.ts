/** A store on S3, with a double of S3: the contract with a bad way to it, stores that break promises, and refusals. */
import assert from 'node:assert/strict';
import { after, describe, type TestContext, test } from 'node:test';
import { fileSystemContract } from '../../../test/contracts/file-system-contract.ts';
import { filesSentAgain, machinesInTurn } from '../../../test/contracts/lost-answers.ts';
import { S3Double, type S3DoubleOptions, type S3Fate } from '../../../test/contracts/s3-double.ts';
import { quickClock } from '../../../test/simulated-time.ts';
import { Code, codeName, toBigtableError } from '../../base/index.ts';
import type { FileSystem } from '../../env/index.ts';
import { systemClock } from '../machine/system-clock.ts';
import { systemRandom } from '../machine/system-random.ts';
import type { SharedStore } from '../shared/shared-store.ts';
import { openS3Store, type S3StoreOptions } from './s3-store.ts';

const OPTIONS = {
  clock: systemClock,
  random: systemRandom,
  credentials: async () => ({ accessKeyId: 'key', secretAccessKey: 'secret' }),
};

// timers of the system's clock do not keep the process alive
const alive = setInterval(() => undefined, 1000);
after(() => clearInterval(alive));

/** The fate of the first sending of each request; later ones are answered. */
function eachRequestOnce(fate: S3Fate): (request: string) => S3Fate {
  const sent = new Set<string>();
  return (request) => {
    if (sent.has(request)) return 'answered';
    sent.add(request);
    return fate;
  };
}

function contractWith(title: string, fate: S3Fate, options: Partial<S3StoreOptions> = {}): void {
  const make = async () => {
    const double = await S3Double.start();
    const opened: SharedStore[] = [];
    const machine = async (): Promise<FileSystem> => {
      const store = await openS3Store(double.address(), { ...OPTIONS, ...options });
      opened.push(store);
      return fate === 'answered' ? store.fileSystem : filesSentAgain(store.fileSystem);
    };
    const machines = async (): Promise<FileSystem> => machinesInTurn([await machine(), await machine()]);
    const fileSystem = await machines();
    double.fate = eachRequestOnce(fate);
    return {
      fileSystem,
      reopen: async () => {
        double.fate = () => 'answered';
        const again = await machines();
        double.fate = eachRequestOnce(fate);
        return again;
      },
      setFreeBytes: () => undefined,
      close: async () => {
        for (const store of opened) await store.close();
        await double.close();
      },
    };
  };
  fileSystemContract(title, make, { isLimited: false });
}

/** Waits between attempts take no time; a request still has some seconds. */
function impatientClock(): S3StoreOptions['clock'] {
  const quick = quickClock();
  return {
    ...systemClock,
    timer: (delayMs, wake) => (delayMs >= 1000 ? systemClock : quick).timer(delayMs, wake),
  };
}

const IMPATIENT = { clock: impatientClock(), switchAfterMs: 2000 };
/** The long form takes some minutes more. */
const isLong = process.env['EDUBBA_EVERY_FATE'] !== undefined;
if (isLong) contractWith('S3, two machines', 'answered', { pageSize: 2 });
for (const fate of isLong ? (['unanswered', 'cut', 'busy'] as const) : ['unanswered' as const])
  contractWith(`S3, files in small parts, every request ${fate} once`, fate, { ...IMPATIENT, partBytes: 100_000 });

describe('a store on S3', () => {
  test('of machines that make it together all see one store, and nothing of a self-test stays', async (t) => {
    const double = await started(t);
    const stores = await Promise.all(Array.from({ length: 4 }, () => openS3Store(double.address('a/b'), OPTIONS)));
    assert.equal(new Set(stores.map(({ identity }) => identity)).size, 1);
    assert.deepEqual([...double.objects.keys()], ['a/b/EDUBBA']);
    assert.equal(double.uploads.size, 0);
    for (const store of stores) await store.close();
    const again = await openS3Store(double.address('a/b'), OPTIONS);
    assert.equal(again.identity, stores[0]!.identity);
    await again.close();
  });

  test('a prefix with other content is refused and left unchanged', async (t) => {
    const double = await started(t);
    double.objects.set('db/thesis.tex', { bytes: Buffer.from('x'), nonce: undefined });
    await refuses(double, Code.FAILED_PRECONDITION, /holds "thesis\.tex"/);
    assert.deepEqual([...double.objects.keys()], ['db/thesis.tex']);
  });

  for (const [breaks, words] of [
    ['conditions', /that of 8 that create one file together one succeeds \(8 did\)/],
    ['conditions of uploads', /that of 8 that create one file together one succeeds/],
    ['ranges', /that a range of an object can be read/],
    ['lists', /that a list shows a slot as soon as it was created/],
  ] as const)
    test(`a store that does not keep its promise of ${breaks} is refused with its words`, async (t) => {
      await refuses(await started(t, { breaks }), Code.FAILED_PRECONDITION, words);
    });

  for (const [status, code, expected, words] of [
    [404, 'NoSuchBucket', Code.FAILED_PRECONDITION, /bucket "bucket" not found/],
    [403, 'AccessDenied', Code.PERMISSION_DENIED, /the credentials do not allow it/],
    [403, 'InvalidAccessKeyId', Code.UNAUTHENTICATED, /the credentials are wrong/],
    [404, 'XAdminUserNotFound', Code.UNAUTHENTICATED, /the credentials are wrong/],
    [404, 'NoSuchThing', Code.FAILED_PRECONDITION, /404 NoSuchThing/],
    [403, 'SignatureDoesNotMatch', Code.UNAUTHENTICATED, /the credentials are wrong/],
    [403, 'RequestTimeTooSkewed', Code.FAILED_PRECONDITION, /the clock of this machine differs/],
    [301, 'PermanentRedirect', Code.FAILED_PRECONDITION, /not in region "us-east-1"/],
    [507, 'XMinioStorageFull', Code.RESOURCE_EXHAUSTED, /there is no space/],
    [501, 'NotImplemented', Code.UNIMPLEMENTED, /does not know/],
    [503, 'SlowDown', Code.UNAVAILABLE, /SlowDown made & refused/],
    [418, 'Teapot', Code.INTERNAL, /418 Teapot/],
  ] as const)
    test(`${status} ${code} is ${codeName(expected)}, in clear words`, async (t) => {
      const refusal = () => ({ status, code });
      await refuses(await started(t, { refusal }), expected, words, { retryForMs: 100 });
    });

  test('a store that is not there is UNAVAILABLE', async (t) => {
    const double = await started(t);
    const address = double.address();
    await double.close();
    await assert.rejects(openS3Store(address, { ...OPTIONS, retryForMs: 100 }), { codeName: 'UNAVAILABLE' });
  });

  test('without credentials the start fails with words', async (t) => {
    const credentials = async () => Promise.reject(new Error('none'));
    const double = await started(t);
    await assert.rejects(openS3Store(double.address(), { ...OPTIONS, credentials }), /none/);
  });

  test('a request that is not answered within its time is sent again', async (t) => {
    let silent = 0;
    const double = await started(t, {
      fate: (request) => (request.startsWith('HEAD') && silent++ === 0 ? 'silent' : 'answered'),
    });
    const store = await openS3Store(double.address(), { ...OPTIONS, attemptMs: 300 });
    assert.ok(silent > 1);
    await store.close();
  });

  test('an own attempt whose answer was lost succeeds, and a file of another writer is ALREADY_EXISTS', async (t) => {
    const double = await started(t);
    const store = await openS3Store(double.address(), { ...OPTIONS, partBytes: 1000 });
    for (const size of [10, 5000]) {
      const [one, other] = [await store.fileSystem.create('f'), await store.fileSystem.create('f')];
      await one.append(Buffer.alloc(size, 1));
      await other.append(Buffer.alloc(size, 2));
      double.fate = (request) =>
        /^(PUT .*\/f |POST .*uploadId)/.test(request) && double.counts.unanswered < 1 ? 'unanswered' : 'answered';
      await one.close();
      assert.equal(double.counts.unanswered, 1);
      double.counts.unanswered = 0;
      double.fate = () => 'answered';
      await assert.rejects(other.close(), { codeName: 'ALREADY_EXISTS' });
      assert.ok((await store.fileSystem.read('f', 0, size)).equals(Buffer.alloc(size, 1)));
      await store.fileSystem.delete('f');
      assert.equal(double.uploads.size, 0, 'nothing of a refused upload stays');
    }
    await store.close();
  });

  test('a large file takes two parts of memory, in order, and an aborted one leaves nothing', async (t) => {
    const double = await started(t);
    const store = await openS3Store(double.address(), { ...OPTIONS, partBytes: 1 << 20 });
    const writer = await store.fileSystem.create('f');
    for (let i = 0; i < 64; i++) await writer.append(Buffer.alloc((1 << 20) + 1, i));
    await writer.close();
    assert.equal(await store.fileSystem.size('f'), 64 * ((1 << 20) + 1));
    for (let i = 0; i < 64; i++) assert.equal((await store.fileSystem.read('f', i * ((1 << 20) + 1), 1))[0], i);
    const aborted = await store.fileSystem.create('g');
    await aborted.append(Buffer.alloc(3 << 20));
    await aborted.abort();
    assert.equal(double.uploads.size, 0);
    await store.close();
  });

  test('a bucket or a user that is gone is no missing object', async (t) => {
    let code: string | undefined;
    const double = await started(t, { refusal: () => (code ? { status: 404, code } : undefined) });
    const store = await openS3Store(double.address(), OPTIONS);
    await assert.rejects(store.fileSystem.size('f'), { codeName: 'NOT_FOUND' });
    for (code of ['NoSuchBucket', 'XAdminUserNotFound', 'Other'])
      for (const call of [
        () => store.fileSystem.size('f'),
        () => store.fileSystem.read('f', 0, 1),
        () => store.slots.read('l/a', 0, 0, 1),
        () => store.slots.delete('l/a', [0]),
        () => store.fileSystem.list(''),
      ])
        await assert.rejects(call(), (error: Error) => 'codeName' in error && error.codeName !== 'NOT_FOUND');
    await store.close();
  });

  test('a read with an absurd length takes no memory', async (t) => {
    const double = await started(t);
    const store = await openS3Store(double.address(), OPTIONS);
    const writer = await store.fileSystem.create('f');
    await writer.append(Buffer.from('abc'));
    await writer.close();
    for (const length of [2 ** 40, Number.MAX_SAFE_INTEGER, Number.NaN, -1])
      await assert.rejects(store.fileSystem.read('f', 0, length), { codeName: 'OUT_OF_RANGE' });
    await assert.rejects(store.fileSystem.read('f', -1, 1), { codeName: 'OUT_OF_RANGE' });
    for (const prefix of [' ', 'a?b', 'é'])
      await assert.rejects(store.fileSystem.list(prefix), { codeName: 'INVALID_ARGUMENT' });
    await store.close();
  });
});

async function started(t: TestContext, options: S3DoubleOptions = {}): Promise<S3Double> {
  const double = await S3Double.start(options);
  t.after(() => double.close());
  return double;
}

async function refuses(
  double: S3Double,
  code: Code,
  words: RegExp,
  options: Partial<S3StoreOptions> = {},
): Promise<void> {
  await assert.rejects(openS3Store(double.address(), { ...OPTIONS, clock: impatientClock(), ...options }), (thrown) => {
    const error = toBigtableError(thrown);
    assert.equal(codeName(error.code), codeName(code), error.message);
    assert.match(error.message, words);
    return true;
  });
}
