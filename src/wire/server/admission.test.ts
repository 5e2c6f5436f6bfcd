import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import * as grpc from '@grpc/grpc-js';
import { BigtableError, Code } from '../../base/index.ts';
import { systemClock } from '../../platform/index.ts';
import { rawServer, testEnv, until } from '../../../test/raw-server.ts';
import type { Authenticate, CallCredentials } from '../contract/rpc-server.ts';
import type { WireServer } from './wire-server.ts';

const pem = (name: string): Buffer => readFileSync(`test/certificates/${name}`);
const refused = (): BigtableError => new BigtableError(Code.UNAUTHENTICATED, 'who are you?');

/** Answers a call with its principal and its request's length. */
const echo = (server: WireServer): void => {
  server.register('/t/Unary', {
    kind: 'unary',
    handle: async (call, request) => Buffer.from(`${call.context.principal} ${request.length}`),
  });
  server.register('/t/Bidi', {
    kind: 'bidi',
    handle: async (call, requests, sink) => {
      for await (const request of requests) await sink.send(Buffer.from(`${call.context.principal} ${request.length}`));
    },
  });
};

async function admitting(authenticate: Authenticate, env = testEnv()) {
  return rawServer(env, echo, { server: { authenticate } });
}

describe('admission of calls', () => {
  for (const [how, authenticate] of [
    ['synchronously', () => 'alice'],
    ['later', async () => 'alice'],
  ] as const) {
    test(`the principal is in the call's context, found ${how}`, async () => {
      const wire = await admitting(authenticate);
      for (const bytes of [0, 3, 100_000, 1_000_000]) {
        const { code, messages } = await wire.call('/t/Unary', [Buffer.alloc(bytes)]);
        assert.deepEqual([code, String(messages[0])], [Code.OK, `alice ${bytes}`]);
      }
      const { messages } = await wire.call(
        '/t/Bidi',
        [1, 300_000, 3].map((bytes) => Buffer.alloc(bytes)),
      );
      assert.deepEqual(messages.map(String), ['alice 1', 'alice 300000', 'alice 3']);
      await wire.close();
    });
  }

  for (const [how, authenticate] of [
    [
      'synchronously',
      () => {
        throw refused();
      },
    ],
    [
      'later',
      async () => {
        throw refused();
      },
    ],
  ] as const) {
    test(`a caller that is refused ${how} gets the status, and nothing of the request is held`, async () => {
      const env = testEnv(1000);
      const wire = await admitting(authenticate, env);
      // more than the budget, and than the windows: it is refused before it has come
      for (const path of ['/t/Unary', '/t/Bidi', '/t/Unknown']) {
        const { code, message, messages } = await wire.call(path, [Buffer.alloc(2_000_000)]);
        assert.deepEqual([code, message, messages.length], [Code.UNAUTHENTICATED, 'who are you?', 0], path);
      }
      assert.equal(env.requestBudget.usedBytes, 0);
      await wire.close();
    });
  }

  test('the authenticator sees path and headers; the first of several headers counts', async () => {
    const seen: CallCredentials[] = [];
    const wire = await admitting((credentials) => {
      seen.push(credentials);
      return 'alice';
    });
    const metadata = new grpc.Metadata();
    metadata.add('x-name', 'one');
    metadata.add('x-name', 'two');
    await wire.call('/t/Unary', [Buffer.alloc(1)], { metadata });
    assert.deepEqual(
      seen.map(({ path, certificate }) => [path, certificate]),
      [['/t/Unary', undefined]],
    );
    assert.equal(seen[0]?.header('x-name')?.split(',')[0], 'one');
    assert.equal(seen[0]?.header('x-other'), undefined);
    await wire.close();
  });

  test('a call that is cancelled while its caller is authenticated does not begin', async () => {
    let open: ((principal: string) => void) | undefined;
    const wire = await admitting(
      () =>
        new Promise((resolve) => {
          open = resolve;
        }),
    );
    const abort = new AbortController();
    const call = wire.call('/t/Unary', [Buffer.alloc(10)], { signal: abort.signal });
    await until(() => open !== undefined);
    abort.abort();
    assert.equal((await call).code, Code.CANCELLED);
    // its reset has arrived when a later call is answered
    const first = open as unknown as (principal: string) => void;
    open = undefined;
    const second = wire.call('/t/Unary', [Buffer.alloc(1)]);
    await until(() => open !== undefined);
    first('alice');
    (open as unknown as (principal: string) => void)('bob');
    assert.equal(String((await second).messages[0]), 'bob 1');
    await wire.close();
  });

  test('a few KB of an unknown caller are read, and the rest when it is authenticated', async () => {
    let open: ((principal: string) => void) | undefined;
    const env = testEnv();
    const wire = await admitting(
      () =>
        new Promise((resolve) => {
          open = resolve;
        }),
      env,
    );
    const call = wire.call('/t/Unary', [Buffer.alloc(1_000_000)]);
    await until(() => open !== undefined && env.requestBudget.usedBytes > 0);
    for (let i = 0; i < 200; i++) await systemClock.yield();
    const { usedBytes } = env.requestBudget;
    // the few KB, and what was read with them from the socket
    assert.ok(usedBytes > 0 && usedBytes <= 16 * 1024 + 64 * 1024 + 256, `${usedBytes} bytes are held`);
    open?.('alice');
    assert.equal(String((await call).messages[0]), 'alice 1000000');
    await until(() => env.requestBudget.usedBytes === 0);
    await wire.close();
  });

  test('an unexpected error of the authenticator is INTERNAL', async () => {
    const wire = await admitting(() => {
      throw new TypeError('oops');
    });
    assert.equal((await wire.call('/t/Unary', [Buffer.alloc(1)])).code, Code.INTERNAL);
    await wire.close();
  });

  test('the authenticator gets the subject of a requested certificate', async () => {
    const subjects: (string | undefined)[] = [];
    const authenticate: Authenticate = ({ certificate }) => {
      subjects.push(certificate);
      return 'any';
    };
    const ca = pem('ca.pem');
    for (const requestCert of [true, false]) {
      const tls = { key: pem('server.key'), cert: pem('server.pem'), ca, requestCert };
      const wire = await rawServer(testEnv(), echo, {
        server: { tls, authenticate },
        credentials: grpc.credentials.createSsl(ca, pem('client.key'), pem('client.pem')),
      });
      assert.equal((await wire.call('/t/Unary', [Buffer.alloc(1)])).code, Code.OK);
      await wire.close();
    }
    assert.deepEqual(subjects, ['CN=client', undefined]);
  });
});
