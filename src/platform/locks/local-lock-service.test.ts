import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { lockServiceContract } from '../../../test/contracts/lock-service-contract.ts';
import { sentAgain } from '../../../test/contracts/lost-answers.ts';
import { lockServiceOverPort } from '../../../test/contracts/over-port.ts';
import { BigtableError, Code, CorruptionError } from '../../base/index.ts';
import { type FileOperation, type LockService, MemoryFileSystem, SeededRandom } from '../../env/index.ts';
import { openLocalLockService } from './local-lock-service.ts';

lockServiceContract('local', async () => {
  const service = await openLocalLockService(new MemoryFileSystem());
  const { proxy: other, close } = lockServiceOverPort(service);
  return { service, other, endSession: (sessionId) => service.closeSession(sessionId), close: async () => close() };
});

lockServiceContract('local, two adapters, every call applied and its answer lost', async () => {
  const service = await openLocalLockService(new MemoryFileSystem());
  const { proxy: other, close } = lockServiceOverPort(service);
  return {
    service: sentAgain(service),
    other: sentAgain(other),
    endSession: (sessionId) => service.closeSession(sessionId),
    close: async () => close(),
  };
});

const TABLE = 'schemas/projects/p/instances/i/tables/t';

describe('local lock service, reopened', () => {
  test('lasting files come back unchanged; ephemeral ones, locks and sessions do not', async () => {
    const fs = new MemoryFileSystem();
    const service = await openLocalLockService(fs);
    const session = await service.openSession();
    await service.tryAcquire('lock', session);
    await service.write('servers/one', bytes('x'), { sessionId: session });
    await service.write(TABLE, bytes('schema 1'));
    const version = await service.write(TABLE, bytes('schema 2'));
    await service.write('deleted', bytes('x'));
    await service.remove('deleted');
    await service.write('emptied', bytes(''));
    await service.write('made ephemeral', bytes('x'));
    await service.write('made ephemeral', bytes('x'), { sessionId: session });
    await service.write('made lasting', bytes('x'), { sessionId: session });
    await service.write('made lasting', bytes('y'));
    const again = await openLocalLockService(fs.crash());
    assert.deepEqual(await contentsOf(again), { emptied: '', 'made lasting': 'y', [TABLE]: 'schema 2' });
    assert.equal((await again.read(TABLE))?.version, version);
    assert.equal(await again.holder('lock'), undefined);
    await assert.rejects(again.tryAcquire('lock', session), hasCode(Code.FAILED_PRECONDITION));
  });

  test('versions, epochs and session ids are never reused, whatever was lost or deleted', async () => {
    let fs = new MemoryFileSystem();
    const sessions = new Set<string>();
    let last = 0;
    for (let opening = 0; opening < 6; opening++) {
      const service = await openLocalLockService(fs);
      const session = await service.openSession();
      sessions.add(session);
      const numbers = [
        await service.write('ephemeral', bytes('x'), { sessionId: session }),
        (await service.tryAcquire('lock', session))!.epoch,
        await service.write('lasting', bytes('x')),
      ];
      await service.remove('lasting');
      numbers.push(await service.write('ephemeral', bytes('y'), { sessionId: session }));
      for (const number of numbers) {
        assert.ok(number > last, `${number} after ${last}`);
        last = number;
      }
      fs = fs.crash();
    }
    assert.equal(sessions.size, 6);
  });

  test('a guard by version holds over a restart', async () => {
    const fs = new MemoryFileSystem();
    const version = await (await openLocalLockService(fs)).write('root', bytes('1'));
    const again = await openLocalLockService(fs.crash());
    await assert.rejects(again.write('root', bytes('2'), { version: 0 }), hasCode(Code.ABORTED));
    assert.ok((await again.write('root', bytes('2'), { version })) > version);
  });

  test('files do not pile up: one a path, deletions only until the opening after the next', async () => {
    let fs = new MemoryFileSystem();
    const service = await openLocalLockService(fs);
    for (let i = 0; i < 20; i++) await service.write('a', bytes(`${i}`));
    assert.equal((await fs.list('lock-service/files/')).length, 1);
    await service.remove('a');
    await service.write('b', bytes('b'));
    await service.remove('b');
    await service.write('b', bytes('again'));
    assert.equal((await fs.list('lock-service/files/')).length, 2);
    for (let opening = 0; opening < 3; opening++) {
      fs = fs.crash();
      const again = await openLocalLockService(fs);
      await again.openSession();
      assert.deepEqual(await contentsOf(again), { b: 'again' });
    }
    assert.equal((await fs.list('lock-service/files/')).length, 1);
    assert.equal((await fs.list('lock-service/numbers/')).length, 1);
  });

  test('a deletion stays while an older file of its path exists', async () => {
    // removals of outdated files fail, as where the process dies before them
    let keep = true;
    const faults = (operation: FileOperation): void => {
      if (keep && operation === 'delete') throw new BigtableError(Code.UNAVAILABLE, 'kept');
    };
    let fs = new MemoryFileSystem({ faults });
    const service = await openLocalLockService(fs);
    for (let i = 0; i < 3; i++) await service.write('a', bytes(`${i}`));
    await service.remove('a');
    await service.write('b', bytes('1'));
    await service.write('b', bytes('2'));
    assert.equal((await fs.list('lock-service/files/')).length, 6);
    keep = false;
    for (const left of [2, 1, 1]) {
      fs = fs.crash();
      assert.deepEqual(await contentsOf(await openLocalLockService(fs)), { b: '2' });
      assert.equal((await fs.list('lock-service/files/')).length, left);
    }
  });

  test('a file of a path that no file system could name', async () => {
    const fs = new MemoryFileSystem();
    const service = await openLocalLockService(fs);
    const paths = ['x'.repeat(4096), '../../etc', 'a b/ü/😀', 'a%2Fb', 'a/b'];
    for (const path of paths) await service.write(path, bytes(path));
    const again = await openLocalLockService(fs.crash());
    assert.deepEqual(await contentsOf(again), Object.fromEntries(paths.map((path) => [path, path])));
  });
});

describe('local lock service, durability', () => {
  test('no change is answered, visible or reported before its file is durable', async () => {
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const fs = new MemoryFileSystem({
      faults: (operation, path) => (operation === 'syncFile' && path.includes('/files/') ? held : undefined),
    });
    const service = await openLocalLockService(fs);
    let answered = false;
    let reported = false;
    service.watch('', ({ kind }) => {
      reported ||= kind === 'changed';
    });
    const writing = service.write('a', bytes('x')).then(() => {
      answered = true;
    });
    for (let i = 0; i < 50; i++) await undefined;
    assert.deepEqual([answered, reported, await service.read('a')], [false, false, undefined]);
    assert.deepEqual(await contentsOf(await openLocalLockService(fs.crash('nothing', () => {}))), {});
    release();
    await assert.rejects(writing, hasCode(Code.UNAVAILABLE));
  });

  test('after a crash anywhere, acknowledged changes are kept, and unacknowledged ones whole or not at all', async () => {
    const outcomes = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.nat(150), async (seed, crashAfter) => {
        const random = new SeededRandom(seed);
        const faults = async (): Promise<void> => {
          for (let left = Math.floor(random.float() * 3); left > 0; left--) await undefined;
        };
        const fs = new MemoryFileSystem({ faults });
        const acknowledged = new Map<string, string | undefined>();
        let pending: { path: string; content: string | undefined } | undefined;
        const working = (async () => {
          const service = await openLocalLockService(fs);
          for (let i = 0; ; i++) {
            const path = `p${i % 3}`;
            pending = { path, content: random.float() < 0.3 ? undefined : `${i}` };
            if (pending.content === undefined) await service.remove(path);
            else await service.write(path, bytes(pending.content));
            acknowledged.set(path, pending.content);
            pending = undefined;
          }
        })();
        working.catch(() => {});
        for (let i = 0; i < crashAfter; i++) await undefined;
        const expected = new Map(acknowledged);
        const inFlight = pending;
        const found = await contentsOf(await openLocalLockService(fs.crash(random, () => {})));
        await assert.rejects(working, hasCode(Code.UNAVAILABLE));
        for (const path of ['p0', 'p1', 'p2']) {
          const possible = [expected.get(path), ...(inFlight?.path === path ? [inFlight.content] : [])];
          assert.ok(possible.includes(found[path]), `${path} is ${found[path]}, not one of ${possible}`);
          if (inFlight?.path === path && expected.get(path) !== inFlight.content)
            outcomes.add(found[path] === inFlight.content ? 'done' : 'lost');
        }
      }),
      { numRuns: 150, seed: 5 },
    );
    assert.deepEqual([...outcomes].sort(), ['done', 'lost'], 'both outcomes were met');
  });

  test('a change that fails has not happened, and the next one succeeds', async () => {
    for (const failing of ['create', 'appendFile', 'closeFile', 'syncFile'] as const) {
      let broken = false;
      const fs = new MemoryFileSystem({
        faults: (operation) => {
          if (broken && operation === failing) throw new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full');
        },
      });
      const service = await openLocalLockService(fs);
      const version = await service.write('a', bytes('1'));
      broken = true;
      await assert.rejects(service.write('a', bytes('2')), hasCode(Code.RESOURCE_EXHAUSTED), failing);
      await assert.rejects(service.remove('a'), hasCode(Code.RESOURCE_EXHAUSTED));
      broken = false;
      assert.equal((await service.read('a'))?.version, version);
      assert.deepEqual(await contentsOf(await openLocalLockService(fs.crash('all'))), { a: '1' });
    }
  });

  test('after a change of unknown outcome every change is refused', async () => {
    let broken = false;
    const fs = new MemoryFileSystem({
      faults: (operation) => {
        if (broken && (operation === 'syncFile' || operation === 'delete')) throw new Error('the disk is gone');
      },
    });
    const service = await openLocalLockService(fs);
    await service.write('a', bytes('1'));
    broken = true;
    await assert.rejects(service.write('a', bytes('2')), hasCode(Code.INTERNAL));
    broken = false;
    await assert.rejects(
      service.write('b', bytes('1')),
      (error) => hasCode(Code.UNAVAILABLE)(error) && /failed midway; open it again/.test(String(error)),
    );
    assert.equal(text((await service.read('a'))?.contents), '1');
    await (await openLocalLockService(fs.crash())).write('b', bytes('1'));
  });

  test('two services that change one directory detect each other', async () => {
    const fs = new MemoryFileSystem();
    const [one, two] = [await openLocalLockService(fs), await openLocalLockService(fs)];
    await one.write('a', bytes('1'));
    await assert.rejects(two.write('a', bytes('2')), hasCode(Code.ALREADY_EXISTS));
    await assert.rejects(two.write('b', bytes('2')), hasCode(Code.UNAVAILABLE));
    assert.equal(text((await one.read('a'))?.contents), '1');
    await one.write('a', bytes('3'));
  });
});

describe('local lock service, damaged files', () => {
  async function filled(): Promise<MemoryFileSystem> {
    const fs = new MemoryFileSystem();
    const service = await openLocalLockService(fs);
    await service.write('root', bytes('where the root tablet is'));
    return fs.crash();
  }

  test('a damaged byte anywhere in any file is corruption that names the file', async () => {
    for (const { path, sizeBytes } of await (await filled()).list('lock-service/')) {
      for (const offset of [0, 8, 12, 20, 28, 36, sizeBytes - 5, sizeBytes - 1]) {
        const fs = await filled();
        fs.damage(path, offset);
        await assert.rejects(
          openLocalLockService(fs),
          (error) => error instanceof CorruptionError && error.file === path,
          `${path} at ${offset}`,
        );
      }
    }
  });

  test('a file under the name of another, and an invalid name, are corruption', async () => {
    for (const [directory, name] of [
      ['files', `${'0'.repeat(32)}-${'0'.repeat(16)}`],
      ['files', 'something-else'],
      ['numbers', 'f'.repeat(16)],
    ] as const) {
      const fs = await filled();
      const [file] = await fs.list(`lock-service/${directory}/`);
      assert.ok(file);
      const copy = `lock-service/${directory}/${name}`;
      const writer = await fs.create(copy);
      await writer.append(await fs.read(file.path, 0, file.sizeBytes));
      await writer.close();
      await assert.rejects(
        openLocalLockService(fs),
        (error) => error instanceof CorruptionError && error.file === copy,
        copy,
      );
    }
  });
});

async function contentsOf(service: LockService): Promise<Record<string, string | undefined>> {
  return Object.fromEntries((await service.list('')).map(({ path, contents }) => [path, text(contents)]));
}

function bytes(content: string): Uint8Array {
  return Buffer.from(content, 'utf8');
}

function text(content: Uint8Array | undefined): string | undefined {
  return content && Buffer.from(content).toString('utf8');
}

function hasCode(code: Code): (error: unknown) => boolean {
  return (error) => error instanceof BigtableError && error.code === code;
}
