/** For the tests of this room: an environment on the real clock, and a gRPC client that sends whatever bytes it is given. */
import * as grpc from '@grpc/grpc-js';
import { ByteBudget, type Logger, Metrics, type RequestContext, requestContext, silentLogger } from '../env/index.ts';
import { systemClock } from '../platform/index.ts';
import { type ApiEnv, WireServer } from '../wire/index.ts';
import { wireStatus } from './rpc/status.ts';

export interface TestEnv extends ApiEnv {
  /** What was logged as an error. */
  readonly errors: string[];
}

export function testEnv(budgetBytes = 64 * 1024 * 1024): TestEnv {
  const errors: string[] = [];
  const logger: Logger = {
    ...silentLogger,
    error: (message, fields) => errors.push(`${message} ${JSON.stringify(fields)}`),
  };
  let names = 0;
  const random = { float: () => 0.5, uniqueName: () => (names++).toString(16).padStart(32, '0') };
  return {
    clock: systemClock,
    random,
    logger,
    metrics: new Metrics(),
    requestBudget: new ByteBudget(budgetBytes),
    errors,
  };
}

export function testContext(env: ApiEnv, options: { signal?: AbortSignal; deadlineMs?: number } = {}): RequestContext {
  return requestContext({ budget: env.requestBudget, ...options });
}

export interface Outcome {
  readonly code: number;
  readonly message: string;
  readonly messages: readonly Buffer[];
  readonly trailers: grpc.Metadata;
}

const asIs = (bytes: Buffer): Buffer => bytes;

/** A server with what `register` puts on it, and a raw client to it. */
export async function rawServer(env: ApiEnv, register: (server: WireServer) => void) {
  const server = new WireServer({ env, statusOf: wireStatus });
  register(server);
  const port = await server.listen('127.0.0.1', 0);
  const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), {
    'grpc.max_receive_message_length': -1,
    'grpc.max_send_message_length': -1,
  });
  return {
    port,
    client,
    server,
    /** Calls a method of any kind with any messages, takes everything it answers. */
    call: (
      path: string,
      messages: readonly Buffer[],
      options: { metadata?: grpc.Metadata; deadlineMs?: number } = {},
    ): Promise<Outcome> =>
      new Promise((resolve) => {
        const deadline = options.deadlineMs === undefined ? {} : { deadline: Date.now() + options.deadlineMs };
        const call = client.makeBidiStreamRequest(path, asIs, asIs, options.metadata ?? new grpc.Metadata(), deadline);
        const answers: Buffer[] = [];
        call.on('data', (bytes: Buffer) => answers.push(bytes));
        call.on('error', () => {});
        call.on('status', (status: grpc.StatusObject) =>
          resolve({ code: status.code, message: status.details, messages: answers, trailers: status.metadata }),
        );
        for (const bytes of messages) call.write(bytes);
        call.end();
      }),
    close: async () => {
      client.close();
      await server.close(0);
    },
  };
}
