import assert from 'node:assert/strict';
import * as http2 from 'node:http2';
import { describe, test } from 'node:test';
import { Code, toBigtableError } from '../../base/index.ts';
import { clockOf, ManualClock } from '../../env/index.ts';
import { systemClock } from '../../platform/index.ts';
import { rawServer, testEnv, until } from '../../../test/raw-server.ts';

const MIB = 1024 * 1024;
const MESSAGE_BYTES = 400_000;

describe('a call that sends more than its reader takes', () => {
  for (const isOther of [false, true]) {
    test(`is ended ${isOther ? 'for another' : 'when it finds no space for the next message'}, and holds nothing afterwards`, async () => {
      const clock = new ManualClock();
      const env = testEnv(
        4 * MIB,
        clockOf({
          ...systemClock,
          monotonicMs: () => clock.monotonicMs(),
          timer: (ms, wake) => clock.timer(ms, wake),
        }),
      );
      let openGate = (): void => {};
      const gate = new Promise<void>((resolve) => (openGate = resolve));
      let failure: Code | undefined;
      const wire = await rawServer(
        env,
        (server) => {
          server.register('/t/Rows', {
            kind: 'stream',
            handle: async (_call, _request, sink) => {
              assert.equal(sink.send(Buffer.alloc(MESSAGE_BYTES)), undefined);
              await gate;
              await Promise.resolve(sink.send(Buffer.alloc(MESSAGE_BYTES))).catch(
                (error: unknown) => (failure = toBigtableError(error).code),
              );
            },
          });
          server.register('/t/Echo', { kind: 'unary', handle: async (_call, request) => request });
        },
        { server: { limits: { maxStreams: 1, keepAliveMs: 1e9, maxIdleMs: 1e9 } } },
      );
      const session = http2.connect(`http://127.0.0.1:${wire.port}`);
      const open = (path: string): http2.ClientHttp2Stream =>
        session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' });
      const statusOf = (stream: http2.ClientHttp2Stream): Promise<number> =>
        new Promise((resolve) => {
          stream.on('trailers', (headers) => resolve(Number(headers['grpc-status'])));
          stream.on(
            'response',
            (headers) => headers['grpc-status'] !== undefined && resolve(Number(headers['grpc-status'])),
          );
          stream.on('error', () => resolve(-1));
        });
      const reading = open('/t/Rows');
      const status = statusOf(reading);
      reading.pause().end(Buffer.alloc(5));
      await until(() => env.requestBudget.usedBytes > MESSAGE_BYTES / 2);
      clock.advance(30_000);
      const spent = env.requestBudget.reservation();
      spent.force(8 * MIB);
      // the part of answers that are never read is in use too
      assert.equal(spent.tryHoldAnswer(1000), 'tight');
      if (isOther) assert.equal(env.requestBudget.reservation().tryGrow(MIB), false);
      openGate();
      await until(() => failure !== undefined);
      assert.equal(failure, Code.UNAVAILABLE);
      let bytes = 0;
      reading.on('data', (chunk: Buffer) => (bytes += chunk.length));
      reading.resume();
      assert.equal(await status, Code.UNAVAILABLE);
      assert.equal(bytes, MESSAGE_BYTES + 5, 'the message that was begun comes whole');
      spent.release();
      await until(() => env.requestBudget.usedBytes === 0);
      // the call counts no more: there is space for another one
      const next = open('/t/Echo');
      const nextStatus = statusOf(next);
      next.resume().end(Buffer.alloc(5));
      assert.equal(await nextStatus, Code.OK);
      session.destroy();
      await wire.close();
    });
  }
});
