/**
 * `edubba serve` as a process: it says when it is ready, ends in order on a signal, and loses nothing however it ends.
 */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Child, edubba, output, temporaryDirectory } from './run.ts';

describe('edubba serve', () => {
  test('says where it listens, answers, stops on SIGTERM with status 0; the data is there afterwards', async (t) => {
    const directory = join(await temporaryDirectory(t), 'data');
    const server = new Child(t, ['serve', '--dir', directory, '--address', '127.0.0.1:0']);
    const address = await server.address();
    assert.match(address, /^127\.0\.0\.1:[1-9]\d*$/);
    assert.match(server.out, new RegExp(`data in ${directory}`));
    assert.match(server.out, new RegExp(`export BIGTABLE_EMULATOR_HOST=${address}`));
    await output(['--address', address, 'createtable', 't', 'families=f:never']);
    await output(['--address', address, 'set', 't', 'r', 'f:q=before@1000']);
    const inUse = await edubba(['--dir', directory, 'ls']);
    assert.equal(inUse.status, 1);
    assert.match(inUse.err, new RegExp(`FAILED_PRECONDITION: .*pid ${server.process.pid} `));
    server.process.kill('SIGTERM');
    assert.equal(await server.ended(), 0, server.err);
    assert.match(server.out, /^stopping on SIGTERM$/m);
    assert.equal(server.err, '');
    assert.match(await output(['--dir', directory, 'read', 't']), /"before"/);

    const again = new Child(t, ['--dir', directory, '--address', '127.0.0.1:0', 'serve']);
    const second = await again.address();
    await output(['--address', second, 'set', 't', 'r', 'f:q=acknowledged@2000']);
    again.process.kill('SIGKILL');
    assert.equal(await again.ended(), 'SIGKILL');
    assert.match(await output(['--dir', directory, 'read', 't']), /"acknowledged"[\s\S]*"before"/);
  });

  test('refuses an address that other machines can reach, and one that is in use', async (t) => {
    const directory = join(await temporaryDirectory(t), 'data');
    for (const address of ['0.0.0.0:0', '[::]:0', '192.0.2.1:0']) {
      const { status, err, out } = await edubba(['serve', '--dir', directory, '--address', address]);
      assert.equal(status, 1);
      assert.match(err, /^edubba: INVALID_ARGUMENT: .*--insecure-public/);
      assert.equal(out, '');
    }
    const nonsense = await edubba(['serve', '--dir', directory, '--address', 'nowhere']);
    assert.match(nonsense.err, /^edubba: INVALID_ARGUMENT: --address: address must be HOST:PORT.*, not "nowhere"/);
    const server = new Child(t, [
      'serve',
      '--dir',
      directory,
      '--address',
      '127.0.0.1:0',
      '--insecure-public',
      '--limits',
      'cloud',
    ]);
    const address = await server.address();
    const taken = await edubba(['serve', '--dir', `${directory}-2`, '--address', address]);
    assert.equal(taken.status, 1);
    assert.match(taken.err, /^edubba: ALREADY_EXISTS: .* is already in use/);
    const owned = await edubba(['serve', '--dir', directory, '--address', '127.0.0.1:0']);
    assert.match(owned.err, /^edubba: FAILED_PRECONDITION: .* is in use by another Edubba/);
    // --limits cloud: keys of up to 4 KiB
    await output(['--address', address, 'createtable', 't', 'families=f:never']);
    const long = await edubba(['--address', address, 'set', 't', 'k'.repeat(5000), 'f:q=1']);
    assert.match(long.err, /^edubba: INVALID_ARGUMENT: .*4096/);
    server.process.kill('SIGINT');
    assert.equal(await server.ended(), 0, server.err);
    // the directory was given free by everyone who failed
    assert.equal(await output(['--dir', directory, 'ls']), 't\n');
    assert.deepEqual((await readdir(directory)).sort(), ['EDUBBA', 'LOCK', 'files', 'logs', 'tmp']);
  });

  test('goes on when no process reads its output; a command ends quietly then', async (t) => {
    const directory = join(await temporaryDirectory(t), 'data');
    const server = new Child(t, ['serve', '--dir', directory, '--address', '127.0.0.1:0']);
    const address = await server.address();
    server.process.stdout?.destroy();
    await output(['--address', address, 'createtable', 't', 'families=f:never']);
    const cells = Array.from({ length: 40 }, (_, i) => `f:${i}=${'x'.repeat(10_000)}`);
    await output(['--address', address, 'set', 't', 'r', ...cells]);
    const reader = new Child(t, ['--address', address, 'read', 't']);
    reader.process.stdout?.destroy();
    assert.equal(await reader.ended(), 0, reader.err);
    assert.equal(reader.err, '');
    server.process.kill('SIGTERM');
    assert.equal(await server.ended(), 0, server.err);
    assert.equal(server.err, '');
  });
});
