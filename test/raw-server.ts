/** A server on the real clock, and grpc-js' client, which shares no code with us, as its peer. */
import * as grpc from '@grpc/grpc-js';
import { toBigtableError } from '../src/base/index.ts';
import { ByteBudget, type Logger, Metrics, silentLogger } from '../src/env/index.ts';
import { systemClock } from '../src/platform/index.ts';
import { type ApiEnv, type RpcStatus, WireServer } from '../src/wire/index.ts';

export interface TestEnv extends ApiEnv {
  /** Log lines by level. */
  readonly errors: string[];
  readonly warnings: string[];
  readonly infos: string[];
}

export function testEnv(budgetBytes = 64 * 1024 * 1024, clock = systemClock): TestEnv {
  const [errors, warnings, infos]: [string[], string[], string[]] = [[], [], []];
  const into =
    (lines: string[]): Logger['info'] =>
    (message, fields) =>
      void lines.push(`${message} ${JSON.stringify(fields)}`);
  const logger: Logger = { ...silentLogger, info: into(infos), warn: into(warnings), error: into(errors) };
  let names = 0;
  return {
    clock,
    random: { float: () => 0.5, uniqueName: () => (names++).toString(16).padStart(32, '0') },
    logger,
    metrics: new Metrics(),
    requestBudget: new ByteBudget(budgetBytes),
    errors,
    warnings,
    infos,
  };
}

export function testStatus(thrown: unknown): RpcStatus {
  const { code, message, details } = toBigtableError(thrown);
  return { code, message, details: Object.keys(details).length > 0 ? Buffer.from(JSON.stringify(details)) : undefined };
}

/** Resolves when `condition` holds, asked in every turn of the event loop. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await systemClock.yield();
}

export interface Outcome {
  readonly code: number;
  readonly message: string;
  readonly messages: readonly Buffer[];
  readonly trailers: grpc.Metadata;
}

export interface CallOptions {
  readonly metadata?: grpc.Metadata;
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

const asIs = (bytes: Buffer): Buffer => bytes;
/**
 * The client dials an address; a certificate is requested by name, since TLS has no server names that are addresses.
 */
const CLIENT_OPTIONS = {
  'grpc.ssl_target_name_override': 'localhost',
  'grpc.max_receive_message_length': -1,
  'grpc.max_send_message_length': -1,
};

/** A server with what `register` puts on it, and a raw client to it. */
export async function rawServer(
  env: ApiEnv,
  register: (server: WireServer) => void,
  more: {
    server?: Partial<ConstructorParameters<typeof WireServer>[0]>;
    client?: Partial<grpc.ChannelOptions>;
    credentials?: grpc.ChannelCredentials;
  } = {},
) {
  const server = new WireServer({ env, statusOf: testStatus, ...more.server });
  register(server);
  const port = await server.listen('127.0.0.1', 0);
  const client = new grpc.Client(`127.0.0.1:${port}`, more.credentials ?? grpc.credentials.createInsecure(), {
    ...CLIENT_OPTIONS,
    ...more.client,
  });
  return {
    port,
    client,
    server,
    /** Calls a method of any kind with any messages, takes everything it answers. */
    call: (path: string, messages: readonly Buffer[], options: CallOptions = {}): Promise<Outcome> =>
      new Promise((resolve) => {
        const deadline = options.deadlineMs === undefined ? {} : { deadline: Date.now() + options.deadlineMs };
        const call = client.makeBidiStreamRequest(path, asIs, asIs, options.metadata ?? new grpc.Metadata(), deadline);
        options.signal?.addEventListener('abort', () => call.cancel());
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
