import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import * as grpc from '@grpc/grpc-js';
import { message } from '../../test/bad-input/protobuf.ts';
import { ByteBudget, Metrics, silentLogger } from '../env/index.ts';
import { systemClock as clock } from '../platform/index.ts';
import type { Service } from '../service/index.ts';
import { startServer } from './server.ts';
import type { TlsFiles } from './tls-files.ts';

function start(
  address: string,
  more: { insecurePublic?: boolean; graceMs?: number; service?: Partial<Service>; tls?: TlsFiles } = {},
) {
  const { service = {}, ...rest } = more;
  const env = {
    clock,
    random: { float: () => 0, uniqueName: () => '0' },
    logger: silentLogger,
    metrics: new Metrics(),
    requestBudget: new ByteBudget(1 << 20),
  };
  return startServer({ service: service as Service, env, address, ...rest });
}

/** PingAndWarm of an instance. */
const PING = message({ 1: 'projects/p/instances/i' });
const asIs = (bytes: Buffer): Buffer => bytes;

function ping(address: string, path = '/google.bigtable.v2.Bigtable/PingAndWarm', request = PING): Promise<number> {
  const client = new grpc.Client(address, grpc.credentials.createInsecure());
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, asIs, asIs, request, (error) => {
      client.close();
      resolve(error ? error.code : 0);
    });
  });
}

describe('a server', () => {
  test('serves at the address that it reports, on IPv4, IPv6 and localhost', async () => {
    for (const [asked, reported] of [
      ['127.0.0.1:0', /^127\.0\.0\.1:\d+$/],
      ['127.1.2.3:0', /^127\.1\.2\.3:\d+$/],
      ['localhost:0', /^localhost:\d+$/],
      ['[::1]:0', /^\[::1\]:\d+$/],
    ] as const) {
      const server = await start(asked);
      assert.match(server.address, reported);
      assert.notEqual(server.address.split(':').at(-1), '0');
      assert.equal(await ping(server.address), 0, asked);
      await server.close();
      await server.close();
    }
  });

  for (const address of [
    '0.0.0.0:0',
    '[::]:0',
    '10.1.2.3:0',
    'example.org:0',
    '128.0.0.1:0',
    '127.0.0.1.example.org:0',
  ]) {
    test(`${address} is refused without insecurePublic`, async () => {
      await assert.rejects(start(address), {
        code: 3,
        message: new RegExp(`${address.replace(/[[\].]/g, '\\$&')} can be reached.*--insecure-public`),
      });
    });
  }

  test('a public address is served with insecurePublic', async () => {
    const server = await start('0.0.0.0:0', { insecurePublic: true });
    assert.equal(await ping(`127.0.0.1:${server.address.split(':')[1]}`), 0);
    await server.close();
  });

  for (const address of [
    '',
    '127.0.0.1',
    ':8086',
    '127.0.0.1:',
    '127.0.0.1:x',
    '127.0.0.1:65536',
    '::1:80',
    'http://127.0.0.1:80',
    '[127.0.0.1:80',
  ]) {
    test(`${JSON.stringify(address)} is refused`, async () => {
      await assert.rejects(start(address, { insecurePublic: true }), {
        code: 3,
        message: /invalid address .*: expected HOST:PORT/,
      });
    });
  }

  test('a port in use is refused with a message', async () => {
    const first = await start('127.0.0.1:0');
    await assert.rejects(start(first.address), { code: 6, message: `${first.address} is already in use` });
    await first.close();
    const second = await start(first.address);
    assert.equal(second.address, first.address);
    await second.close();
  });

  test('serves TLS where it is given certificates', async () => {
    const pem = (name: string): string => `test/certificates/${name}`;
    const server = await start('127.0.0.1:0', { tls: { keyFile: pem('server.key'), certFile: pem('server.pem') } });
    const client = new grpc.Client(server.address, grpc.credentials.createSsl(readFileSync(pem('ca.pem'))), {
      'grpc.ssl_target_name_override': 'localhost',
    });
    const code = await new Promise((resolve) =>
      client.makeUnaryRequest('/google.bigtable.v2.Bigtable/PingAndWarm', asIs, asIs, PING, (error) =>
        resolve(error?.code ?? 0),
      ),
    );
    assert.equal(code, 0);
    client.close();
    await server.close();
  });

  test('closing lets a call in progress end', async () => {
    let finish: (() => void) | undefined;
    const service: Partial<Service> = {
      deleteTable: () =>
        new Promise((resolve) => {
          finish = () => resolve(false);
        }),
    };
    const server = await start('127.0.0.1:0', { service });
    const call = ping(server.address, '/google.bigtable.admin.v2.BigtableTableAdmin/DeleteTable');
    while (!finish) await clock.yield();
    const closed = server.close();
    finish();
    assert.equal(await call, 0);
    await closed;
    assert.notEqual(await ping(server.address), 0);
  });

  test('closing cuts off a call that outlasts the grace', async () => {
    let begun = false;
    const service: Partial<Service> = {
      deleteTable: () =>
        new Promise(() => {
          begun = true;
        }),
    };
    const server = await start('127.0.0.1:0', { service, graceMs: 10 });
    const call = ping(server.address, '/google.bigtable.admin.v2.BigtableTableAdmin/DeleteTable');
    while (!begun) await clock.yield();
    await server.close();
    assert.notEqual(await call, 0);
  });
});
