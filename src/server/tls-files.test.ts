import assert from 'node:assert/strict';
import { copyFile, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Code } from '../base/index.ts';
import { ManualClock, silentLogger } from '../env/index.ts';
import type { TlsOptions } from '../wire/index.ts';
import { readTlsFiles, watchTlsFiles } from './tls-files.ts';

const pem = (name: string): string => `test/certificates/${name}`;
const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1));

describe('TLS from files', () => {
  let directory = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'edubba-tls-'));
  });
  after(() => rm(directory, { recursive: true }));

  test('with a client authority, clients must show certificates', async () => {
    const plain = await readTlsFiles({ keyFile: pem('server.key'), certFile: pem('server.pem') });
    assert.match(String(plain.key), /PRIVATE KEY/);
    assert.equal(plain.requestCert, undefined);
    assert.equal(
      (await readTlsFiles({ keyFile: pem('server.key'), certFile: pem('server.pem'), minVersion: '1.3' })).minVersion,
      '1.3',
    );
    const mutual = await readTlsFiles({
      keyFile: pem('server.key'),
      certFile: pem('server.pem'),
      clientCaFile: pem('ca.pem'),
    });
    assert.equal(mutual.requestCert, true);
  });

  test('a missing file is named', async () => {
    await assert.rejects(readTlsFiles({ keyFile: '/nowhere/key.pem', certFile: pem('server.pem') }), {
      code: Code.INVALID_ARGUMENT,
      message: /\/nowhere\/key\.pem/,
    });
  });

  test('changed files are reloaded; broken ones change nothing and are logged', async () => {
    const files = { keyFile: join(directory, 'key.pem'), certFile: join(directory, 'cert.pem') };
    await copyFile(pem('server.key'), files.keyFile);
    await copyFile(pem('server.pem'), files.certFile);
    const clock = new ManualClock();
    const logged: string[] = [];
    const logger = {
      ...silentLogger,
      info: (message: string) => logged.push(message),
      warn() {},
      error: (message: string) => logged.push(message),
    };
    const read: TlsOptions[] = [];
    const stop = watchTlsFiles(files, { clock, logger }, (options) => {
      if (String(options.cert) === 'broken') throw new Error('no certificate');
      read.push(options);
    });
    /** Lets one check end, and resolves when the next one is due. */
    const checked = async (): Promise<void> => {
      while (clock.nextTimerMs() === Number.POSITIVE_INFINITY) await turn();
    };
    const next = async (): Promise<void> => {
      clock.advance(10_000);
      await checked();
    };
    await checked();
    await next();
    assert.equal(read.length, 0);
    await copyFile(pem('stranger.pem'), files.certFile);
    await utimes(files.certFile, 1, 1);
    await next();
    assert.equal(read.length, 1);
    await writeFile(files.certFile, 'broken');
    await next();
    assert.equal(read.length, 1);
    assert.match(logged.at(-1) ?? '', /old ones stay in use/);
    stop();
    clock.advance(100_000);
    assert.equal(clock.nextTimerMs(), Number.POSITIVE_INFINITY);
  });
});
