/**
 * The cost of a call between the wire and the disk: btbench's calls as bytes, handed straight to the API's methods in
 * this process. No socket, no gRPC, no client: CPU time here is our own code's alone (log appends and flushes
 * included). To be run under --cpu-prof.
 *
 *   npm run bench -- calls [--rows=20000] [--secs=2] [--calls=32] [--workloads=randwrite,scan]
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '../src/boot/index.ts';
import { CallContext, requestContext } from '../src/env/index.ts';
import { registerCloudApi } from '../src/grpc/index.ts';
import type { ApiEnv, RpcMethod, RpcServer, RpcSink } from '../src/wire/index.ts';

const options = new Map(
  process.argv.slice(2).map((word) => [word.replace(/^--|=.*$/g, ''), word.replace(/^[^=]*=/, '')] as const),
);
const ROWS = Number(options.get('rows') ?? 20_000);
const SECONDS = Number(options.get('secs') ?? 2);
const CALLS = Number(options.get('calls') ?? 32);
const TABLE = 'projects/p/instances/i/tables/calls';
const VALUE_BYTES = 1000;
const BATCH = 100;
const SCAN = 1000;
/** Requests of a workload that are made beforehand, to be sent over and over. */
const PREPARED = 2000;
const DEADLINE_MS = 60_000;

interface Workload {
  readonly method: string;
  readonly rows: number;
  readonly request: (i: number) => Buffer;
}

const any = (): number => Math.floor(Math.random() * ROWS);
const key = (i: number): Buffer => Buffer.from(`row${String(i).padStart(9, '0')}`);

/** A field of a protobuf message: a number, or bytes (a text, another message). */
function field(number: number, value: number | string | Buffer): Buffer {
  if (typeof value === 'number') return Buffer.concat([varint(number * 8), varint(value)]);
  const bytes = Buffer.from(value);
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (; value >= 0x80; value = Math.floor(value / 0x80)) bytes.push((value % 0x80) | 0x80);
  return Buffer.from([...bytes, value]);
}

const message = (...fields: Buffer[]): Buffer => Buffer.concat(fields);
const set = (column: string, value: Buffer): Buffer =>
  field(1, message(field(1, 'cf'), field(2, column), field(3, 1_000_000), field(4, value)));
const write = (i: number): Buffer => set('v', Buffer.alloc(VALUE_BYTES, i));
const table = field(1, TABLE);
/** chain(column regex, latest version) */
const filter = field(1, message(field(1, field(6, 'v')), field(1, field(12, 1))));
const keys = (count: number): Buffer => field(2, message(...Array.from({ length: count }, () => field(1, key(any())))));

function range(): Buffer {
  const from = Math.floor(Math.random() * Math.max(1, ROWS - SCAN));
  return field(2, field(2, message(field(1, key(from)), field(3, key(from + SCAN)))));
}

const WORKLOADS: Readonly<Record<string, Workload>> = {
  randwrite: {
    method: 'MutateRow',
    rows: 1,
    request: () => {
      const i = any();
      return message(table, field(2, key(i)), field(3, write(i)));
    },
  },
  batchwrite: {
    method: 'MutateRows',
    rows: BATCH,
    request: (batch) => {
      const from = (batch * BATCH) % ROWS;
      return message(
        table,
        ...Array.from({ length: BATCH }, (_, at) =>
          field(2, message(field(1, key(from + at)), field(2, write(from + at)))),
        ),
      );
    },
  },
  randread: { method: 'ReadRows', rows: 1, request: () => message(table, keys(1)) },
  scan: { method: 'ReadRows', rows: SCAN, request: () => message(table, range()) },
  fscan: { method: 'ReadRows', rows: SCAN, request: () => message(table, range(), field(3, filter)) },
  multiget: { method: 'ReadRows', rows: BATCH, request: () => message(table, keys(BATCH)) },
  rmw: {
    method: 'ReadModifyWriteRow',
    rows: 1,
    request: () => message(table, field(2, key(any())), field(3, message(field(1, 'cf'), field(2, 'n'), field(4, 1)))),
  },
  cam: {
    method: 'CheckAndMutateRow',
    rows: 1,
    request: () =>
      message(
        table,
        field(2, key(any())),
        field(4, set('c', Buffer.from('yes'))),
        field(5, set('c', Buffer.from('no'))),
        field(6, filter),
      ),
  },
};

class Methods implements RpcServer {
  readonly #byName = new Map<string, RpcMethod>();
  readonly #env: ApiEnv;

  constructor(env: ApiEnv) {
    this.#env = env;
  }

  register(path: string, method: RpcMethod): void {
    this.#byName.set(path, method);
  }

  async listen(): Promise<number> {
    return 0;
  }

  async close(): Promise<void> {}

  /** As a wire would call it: with a deadline and a way to give up. Answers the bytes that came back. */
  async call(name: string, request: Buffer): Promise<number> {
    const path = `/google.bigtable.v2.Bigtable/${name}`;
    const method = this.#byName.get(path) as RpcMethod;
    const { clock, requestBudget } = this.#env;
    const context = new CallContext({ budget: requestBudget, deadlineMs: clock.monotonicMs() + DEADLINE_MS });
    context.reservation.tryGrow(request.length);
    const call = { path, context, header: () => undefined, startMs: clock.monotonicMs(), addTrailer: () => {} };
    let bytes = 0;
    const send = (message: Buffer | readonly Buffer[]): undefined => {
      bytes += Buffer.isBuffer(message) ? message.length : message.reduce((sum, part) => sum + part.length, 0);
    };
    const sink: RpcSink = { send, sendCopy: send };
    if (method.kind === 'unary') bytes += (await method.handle(call, request)).length;
    else if (method.kind === 'stream') await method.handle(call, request, sink);
    context.reservation.release();
    return bytes;
  }
}

async function measure(
  methods: Methods,
  name: string,
  { method, rows, request }: Workload,
  calls: number,
  limit: number,
) {
  const requests = Array.from({ length: Math.min(PREPARED, limit) }, (_, i) => request(i));
  const before = process.cpuUsage();
  const start = performance.now();
  let [done, bytes] = [0, 0];
  const worker = async (): Promise<void> => {
    while (done < limit && performance.now() - start < SECONDS * 1000) {
      const answered = await methods.call(method, requests[done++ % requests.length] as Buffer);
      bytes += answered;
      // as between a wire's packets
      if (done % 16 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await Promise.all(Array.from({ length: calls }, worker));
  const { user, system } = process.cpuUsage(before);
  const count = done * rows;
  return {
    workload: name,
    calls: done,
    'us a row': Number(((user + system) / count).toFixed(2)),
    'user us a row': Number((user / count).toFixed(2)),
    'bytes a row': Math.round(bytes / count),
  };
}

const directory = await mkdtemp(join(tmpdir(), 'edubba-calls-'));
const { service, env, close } = await openDatabase({ directory });
try {
  const methods = new Methods(env);
  registerCloudApi(methods, service, env);
  const families = [{ name: 'cf', gcRule: { kind: 'maxVersions', versions: 1 } }] as const;
  await service.createTable(requestContext({ budget: env.requestBudget }), {
    name: TABLE,
    families,
    splits: [],
    granularity: 'millis',
    deletionProtection: false,
  });
  const names = options.get('workloads')?.split(',') ?? Object.keys(WORKLOADS);
  const lines = [await measure(methods, 'load', WORKLOADS.batchwrite as Workload, 8, Math.ceil(ROWS / BATCH))];
  for (const name of names)
    lines.push(await measure(methods, name, WORKLOADS[name] as Workload, CALLS, Number.POSITIVE_INFINITY));
  console.table(lines);
} finally {
  await close();
  await rm(directory, { recursive: true });
}
