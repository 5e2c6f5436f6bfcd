/**
 * grpc.testing.TestService on our wire, for grpc's own interop clients (grpc/doc/interop-test-descriptions.md): a
 * program that says "listening on HOST:PORT" and serves until it is ended.
 *
 *   node test-service.js [KEY.pem CERTIFICATE.pem]
 */
import { readFileSync } from 'node:fs';
import { BigtableError, type Code, toBigtableError } from '../../../src/base/index.ts';
import { ByteBudget, Metrics, silentLogger } from '../../../src/env/index.ts';
import { systemClock, systemRandom } from '../../../src/platform/index.ts';
import { type RpcCall, type RpcSink, WireServer } from '../../../src/wire/index.ts';
import { bytesOf, type Fields, messagesOf, numberField, numberOf, payloadOf, readFields } from './messages.ts';

const EMPTY = Buffer.alloc(0);
const ECHO_INITIAL = 'x-grpc-test-echo-initial';
const ECHO_TRAILING = 'x-grpc-test-echo-trailing-bin';

/** Headers of these names come back as the client sent them. */
function headers(call: RpcCall): string[] {
  const value = call.header(ECHO_INITIAL);
  return value === undefined ? [] : [ECHO_INITIAL, value];
}

function echoTrailer(call: RpcCall): void {
  const value = call.header(ECHO_TRAILING);
  if (value !== undefined) call.addTrailer(ECHO_TRAILING, value);
}

/** EchoStatus { code = 1, message = 2 } in field 7: the call is to fail so. */
function checkStatus(request: Fields): void {
  const [status] = messagesOf(request, 7);
  if (status && numberOf(status, 1) !== 0)
    throw new BigtableError(numberOf(status, 1) as Code, String(bytesOf(status, 2) ?? ''));
}

/** ResponseParameters { size = 1, interval_us = 2 } in field 2: an answer each. */
async function answer(request: Fields, sink: RpcSink): Promise<void> {
  for (const parameters of messagesOf(request, 2)) {
    const delayMs = numberOf(parameters, 2) / 1000;
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
    await sink.send(payloadOf(numberOf(parameters, 1)));
  }
}

const [keyFile, certFile] = process.argv.slice(2);
const tls =
  keyFile !== undefined && certFile !== undefined
    ? { key: readFileSync(keyFile), cert: readFileSync(certFile) }
    : undefined;
const server = new WireServer({
  env: {
    clock: systemClock,
    random: systemRandom,
    logger: silentLogger,
    metrics: new Metrics(),
    requestBudget: new ByteBudget(64 << 20),
  },
  statusOf: (thrown) => {
    const { code, message } = toBigtableError(thrown);
    return { code, message, details: undefined };
  },
  tls,
});

const path = (method: string): string => `/grpc.testing.TestService/${method}`;
server.register(path('EmptyCall'), { kind: 'unary', handle: async () => EMPTY });
server.register(path('UnaryCall'), {
  kind: 'unary',
  headers,
  handle: async (call, bytes) => {
    echoTrailer(call);
    const request = readFields(bytes);
    checkStatus(request);
    return payloadOf(numberOf(request, 2));
  },
});
server.register(path('StreamingOutputCall'), {
  kind: 'stream',
  headers,
  handle: (_call, bytes, sink) => answer(readFields(bytes), sink),
});
server.register(path('StreamingInputCall'), {
  kind: 'bidi',
  headers,
  handle: async (_call, requests, sink) => {
    let bytes = 0;
    for await (const request of requests)
      for (const payload of messagesOf(readFields(request), 1)) bytes += bytesOf(payload, 2)?.length ?? 0;
    await sink.send(numberField(1, bytes));
  },
});
server.register(path('FullDuplexCall'), {
  kind: 'bidi',
  headers,
  handle: async (call, requests, sink) => {
    echoTrailer(call);
    for await (const bytes of requests) {
      const request = readFields(bytes);
      checkStatus(request);
      await answer(request, sink);
    }
  },
});
console.log(`listening on 127.0.0.1:${await server.listen('127.0.0.1', 0)}`);
