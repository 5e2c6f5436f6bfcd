/** The counts and reports of calls, with a client that shares no code with us. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import * as grpc from '@grpc/grpc-js';
import { BigtableError, Code } from '../../base/index.ts';
import { rawServer, testEnv, until } from '../../../test/raw-server.ts';
import type { EndedCall, RpcMethod } from '../contract/rpc-server.ts';

type Reported = Pick<EndedCall, 'path' | 'peer' | 'code' | 'receivedBytes' | 'sentBytes'>;

const METHODS: Readonly<Record<string, RpcMethod>> = {
  '/s/Echo': { kind: 'unary', handle: async (_, request) => request },
  '/s/Fail': { kind: 'unary', handle: async () => Promise.reject(new BigtableError(Code.NOT_FOUND, 'nothing')) },
  '/s/Never': {
    kind: 'unary',
    handle: ({ context }) =>
      new Promise((_, reject) => context.signal?.addEventListener('abort', () => reject(context.signal?.reason))),
  },
  '/s/Many': {
    kind: 'stream',
    handle: async (_call, request, sink) => {
      for (let i = 0; i < 3; i++) await sink.send(request);
    },
  },
};

async function server(t: TestContext) {
  const env = testEnv();
  const reported: Reported[] = [];
  const onCall = ({ path, peer, code, receivedBytes, sentBytes }: EndedCall): void =>
    void reported.push({ path, peer, code, receivedBytes, sentBytes });
  const raw = await rawServer(
    env,
    (to) => {
      for (const [path, method] of Object.entries(METHODS)) to.register(path, method);
    },
    { server: { onCall } },
  );
  t.after(raw.close);
  return { ...raw, env, reported };
}

test('each call is counted by method and code, and reported with its bytes', async (t) => {
  const { call, env, reported } = await server(t);
  const large = Buffer.alloc(300_000, 'x');
  await call('/s/Echo', [Buffer.from('12345')]);
  await call('/s/Echo', [large]);
  await call('/s/Many', [Buffer.from('12')]);
  await call('/s/Fail', [Buffer.from('1')]);
  await until(() => reported.length === 4);
  const peer = reported[0]?.peer;
  assert.match(String(peer), /^(::ffff:)?127\.0\.0\.1$/);
  assert.deepEqual(reported, [
    { path: '/s/Echo', peer, code: Code.OK, receivedBytes: 10, sentBytes: 10 },
    { path: '/s/Echo', peer, code: Code.OK, receivedBytes: 300_005, sentBytes: 300_005 },
    { path: '/s/Many', peer, code: Code.OK, receivedBytes: 7, sentBytes: 21 },
    { path: '/s/Fail', peer, code: Code.NOT_FOUND, receivedBytes: 6, sentBytes: 0 },
  ]);
  const { counters, gauges, histograms } = env.metrics.report();
  assert.deepEqual(
    Object.entries(counters).filter(([name]) => name.startsWith('calls.')),
    [
      ['calls.ended|s/Echo|OK', 2],
      ['calls.ended|s/Fail|NOT_FOUND', 1],
      ['calls.ended|s/Many|OK', 1],
    ],
  );
  assert.equal(
    histograms['calls.durationMs|s/Echo']?.counts.reduce((sum, count) => sum + count, 0),
    2,
  );
  assert.equal(gauges['calls.inFlight|s/Echo'], 0);
});

test('methods that callers make up count as one', async (t) => {
  const { call, env, reported } = await server(t);
  for (let i = 0; i < 50; i++) await call(`/made.up/Method${i}`, []);
  await until(() => reported.length === 50);
  const { counters, gauges, histograms } = env.metrics.report();
  assert.deepEqual([counters['calls.ended|unknown|UNIMPLEMENTED'], gauges['calls.inFlight|unknown']], [50, 0]);
  assert.equal(Object.keys(histograms).length, 1);
});

test('a call is in flight until it ends: cancelled by its caller, out of time, or cut off with its connection', async (t) => {
  const { call, env, reported, client } = await server(t);
  const inFlight = (): number | undefined => env.metrics.report().gauges['calls.inFlight|s/Never'];
  const abort = new AbortController();
  const cancelled = call('/s/Never', [Buffer.of(1)], { signal: abort.signal });
  await until(() => inFlight() === 1);
  abort.abort();
  assert.equal((await cancelled).code, grpc.status.CANCELLED);
  await until(() => inFlight() === 0);
  assert.equal((await call('/s/Never', [Buffer.of(1)], { deadlineMs: 50 })).code, grpc.status.DEADLINE_EXCEEDED);
  await until(() => inFlight() === 0);
  const lost = call('/s/Never', [Buffer.of(1)]);
  await until(() => inFlight() === 1);
  client.close();
  abort.abort();
  lost.catch(() => {});
  assert.equal(reported[0]?.code, Code.CANCELLED);
  // the client or the server may be the first to notice that the time is over
  assert.ok([Code.CANCELLED, Code.DEADLINE_EXCEEDED].some((code) => code === reported[1]?.code));
});
