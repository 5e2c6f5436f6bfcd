/**
 * Bad bytes at a server's door: requests that no library would send, random and mutilated messages to every method of
 * the three services, and broken HTTP/2. Each is answered with an honest code; afterwards nothing has changed, no bytes
 * are held, and good requests are served. EDUBBA_SEED=N sends other bytes, EDUBBA_FUZZ_RUNS=N more.
 */
import assert from 'node:assert/strict';
import { connect as connectHttp2, constants, type ClientHttp2Session, type IncomingHttpHeaders } from 'node:http2';
import { after, before, describe, test } from 'node:test';
import * as grpc from '@grpc/grpc-js';
import fc from 'fast-check';
import { Code, codeName } from '../../src/base/index.ts';
import { openDatabase } from '../../src/boot/index.ts';
import { startServer } from '../../src/server/index.ts';
import { message, methodsOf } from './protobuf.ts';
import { ADMIN, DATA, EMPTY_FILTERS, INSTANCE, setCell, T, WIRE_REQUESTS } from './wire-requests.ts';
import { silentLogger } from '../../src/env/index.ts';

const SEED = Number(process.env['EDUBBA_SEED'] ?? 1);
const RUNS_A_METHOD = Number(process.env['EDUBBA_FUZZ_RUNS'] ?? 12);
/** Codes that would be our fault. A call that takes longer than the deadline hangs. */
const FAULTS: readonly number[] = [
  Code.UNKNOWN,
  Code.INTERNAL,
  Code.DATA_LOSS,
  Code.DEADLINE_EXCEEDED,
  Code.UNAVAILABLE,
];
const DEADLINE_MS = 30_000;
const METHODS = [
  'bigtable/v2/bigtable',
  'bigtable/admin/v2/bigtable_table_admin',
  'bigtable/admin/v2/bigtable_instance_admin',
].flatMap((name) => methodsOf(`google/${name}.proto`));

const FUZZED = `${INSTANCE}/tables/fuzzed`;
/** Good requests, to be mutilated. They are all about a table of their own. */
const GOOD: Readonly<Record<string, Buffer>> = {
  [`${DATA}MutateRow`]: message({
    1: FUZZED,
    2: 'r',
    3: [setCell(), message({ 2: message({ 1: 'f', 2: 'q', 3: message({ 1: 1000 }) }) })],
  }),
  [`${DATA}MutateRows`]: message({
    1: FUZZED,
    2: [
      message({ 1: 'r', 2: [setCell(), message({ 4: message() })] }),
      message({ 1: 's', 2: [message({ 3: message({ 1: 'f' }) })] }),
    ],
  }),
  [`${DATA}CheckAndMutateRow`]: message({
    1: FUZZED,
    2: 'r',
    4: [setCell()],
    5: [setCell()],
    6: message({ 1: message({ 1: [message({ 9: 'v.*' }), message({ 11: 1 })] }) }),
  }),
  [`${DATA}ReadModifyWriteRow`]: message({
    1: FUZZED,
    2: 'r',
    3: [message({ 1: 'f', 2: 'n', 4: 1 }), message({ 1: 'f', 2: 'a', 3: 'x' })],
  }),
  [`${DATA}ReadRows`]: message({
    1: FUZZED,
    2: message({ 1: ['r'], 2: [message({ 1: 'a', 3: 'z' })] }),
    3: message({ 3: message({ 1: message({ 6: 'q+' }), 2: message({ 13: true }) }) }),
    4: 5,
  }),
  [`${DATA}SampleRowKeys`]: message({ 1: FUZZED }),
  [`${ADMIN}ModifyColumnFamilies`]: message({
    1: FUZZED,
    2: [
      message({
        1: 'f',
        3: message({ 1: message({ 4: message({ 1: [message({ 1: 3 }), message({ 2: message({ 1: 60 }) })] }) }) }),
      }),
    ],
  }),
  [`${ADMIN}DropRowRange`]: message({ 1: FUZZED, 2: 'zz' }),
};

const asIs = (bytes: Buffer): Buffer => bytes;

interface Answer {
  readonly code: number;
  readonly text: string;
  readonly messages: readonly Buffer[];
}

describe('bad bytes', () => {
  let address: string;
  let client: grpc.Client;
  let database: Awaited<ReturnType<typeof openDatabase>>;
  let server: Awaited<ReturnType<typeof startServer>>;
  let asItWas: string;
  const errors: string[] = [];

  function call(path: string, bytes: Buffer, metadata = new grpc.Metadata()): Promise<Answer> {
    return new Promise((resolve) => {
      const stream = client.makeBidiStreamRequest(path, asIs, asIs, metadata, { deadline: Date.now() + DEADLINE_MS });
      const messages: Buffer[] = [];
      stream.on('data', (answer: Buffer) => messages.push(answer));
      stream.on('error', () => {});
      stream.on('status', ({ code, details }) => resolve({ code, text: details, messages }));
      stream.write(bytes);
      stream.end();
    });
  }

  const contents = async (): Promise<string> => {
    const [table, rows] = [
      await call(`${ADMIN}GetTable`, message({ 1: T })),
      await call(`${DATA}ReadRows`, message({ 1: T })),
    ];
    assert.deepEqual([table.code, rows.code], [0, 0], table.text + rows.text);
    return Buffer.concat([...table.messages, ...rows.messages]).toString('hex');
  };

  before(async () => {
    const silent = {
      ...silentLogger,
      warn: () => {},
      error: (text: string, fields?: object) => void errors.push(`${text} ${JSON.stringify(fields)}`),
    };
    database = await openDatabase({ memory: true, logger: silent });
    server = await startServer({ service: database.service, env: database.env, address: '127.0.0.1:0' });
    address = server.address;
    client = new grpc.Client(address, grpc.credentials.createInsecure(), { 'grpc.max_send_message_length': -1 });
    const int64 = message({ 5: message({ 1: message({ 1: message() }) }) });
    const sum = message({ 3: message({ 6: message({ 1: int64, 4: message() }) }) });
    const families = ['f', 'g'].map((name) => message({ 1: name, 2: message() }));
    for (const [id, more] of [
      ['t', [message({ 1: 'sum', 2: sum })]],
      ['fuzzed', []],
    ] as const) {
      const made = await call(
        `${ADMIN}CreateTable`,
        message({ 1: INSTANCE, 2: id, 3: message({ 3: [...families, ...more], 4: 1 }) }),
      );
      assert.equal(made.code, 0, made.text);
    }
    const written = await call(`${DATA}MutateRow`, message({ 1: T, 2: 'kept', 3: [setCell()] }));
    assert.equal(written.code, 0, written.text);
    asItWas = await contents();
  });
  after(async () => {
    client.close();
    await server.close();
    await database.close();
  });

  async function checkSound(): Promise<void> {
    assert.equal(await contents(), asItWas, 'a refused request has changed something');
    const good = await call(`${DATA}MutateRow`, message({ 1: FUZZED, 2: 'good', 3: [setCell({ 1: 'g' })] }));
    assert.equal(good.code, 0, good.text);
    const read = await call(
      `${DATA}ReadRows`,
      message({ 1: FUZZED, 2: message({ 1: ['good'] }), 3: message({ 5: 'g' }) }),
    );
    assert.equal(read.code, 0, read.text);
    assert.ok(Buffer.concat([...read.messages]).includes('good'));
    // the last answer's bytes are given back when the transport has taken them
    for (let turns = 0; database.env.requestBudget.usedBytes > 0 && turns < 1000; turns++)
      await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([database.env.requestBudget.usedBytes, database.env.requestBudget.waiting], [0, 0]);
    assert.deepEqual(errors, [], 'faults of our own');
  }

  for (const { name, path, bytes, code, says } of WIRE_REQUESTS) {
    test(name, async () => {
      const answer = await call(path, bytes);
      assert.equal(codeName(answer.code as Code), codeName(code), answer.text);
      assert.match(answer.text, says);
      assert.ok(answer.text.length < 3000);
    });
  }
  test('a filter whose range starts above its end passes nothing', async () => {
    for (const filter of EMPTY_FILTERS) {
      const { code, text, messages } = await call(`${DATA}ReadRows`, message({ 1: T, 3: filter }));
      assert.equal(code, 0, text);
      assert.ok(!Buffer.concat([...messages]).includes('kept'));
    }
  });

  test('a filter with nothing set passes everything, inside others too', async () => {
    for (const filter of [
      message(),
      message({ 1: message({ 1: [message({ 17: true }), message()] }) }),
      message({ 3: message({ 1: message(), 2: message() }) }),
    ]) {
      const { code, text, messages } = await call(`${DATA}ReadRows`, message({ 1: T, 3: filter }));
      assert.equal(code, 0, text);
      assert.ok(Buffer.concat([...messages]).includes('kept'));
    }
  });

  test('after those everything is as it was', checkSound);

  test('a value of 100 MiB and a byte, and none of it stays', async () => {
    const answer = await call(
      `${DATA}MutateRow`,
      message({ 1: T, 2: 'refused', 3: [setCell({ 4: Buffer.alloc(100 * 1024 * 1024 + 1) })] }),
    );
    assert.equal(answer.code, Code.INVALID_ARGUMENT, answer.text);
    assert.match(answer.text, /value has 104857601 bytes; the limit is 104857600/);
    await checkSound();
  });

  test(`random bytes to each of ${METHODS.length} methods, seed ${SEED}`, { timeout: 120_000 }, async () => {
    assert.equal(METHODS.length, 84);
    const anyBytes = fc.oneof(
      { weight: 3, arbitrary: fc.uint8Array({ maxLength: 60 }) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 3000 }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(anyBytes, { minLength: 4, maxLength: 4 }), async (inputs) => {
        const answers = await Promise.all(
          METHODS.flatMap((path) => inputs.map(async (bytes) => ({ path, ...(await call(path, Buffer.from(bytes))) }))),
        );
        for (const { path, code, text } of answers)
          assert.ok(!FAULTS.includes(code), `${path}: ${codeName(code as Code)} ${text}`);
      }),
      { seed: SEED, numRuns: Math.ceil(RUNS_A_METHOD / 4), endOnFailure: true },
    );
    await checkSound();
  });

  test(`good requests cut short and with bytes changed, seed ${SEED}`, { timeout: 120_000 }, async () => {
    const change = fc.record({
      at: fc.nat(),
      by: fc.integer({ min: 1, max: 255 }),
      cut: fc.option(fc.nat(), { freq: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...Object.keys(GOOD)),
        fc.array(change, { minLength: 1, maxLength: 3 }),
        async (path, changes) => {
          let bytes = Buffer.from(GOOD[path] as Buffer);
          for (const { at, by, cut } of changes) {
            if (bytes.length === 0) break;
            bytes[at % bytes.length] = (bytes[at % bytes.length] as number) ^ by;
            if (cut !== null) bytes = bytes.subarray(0, cut % bytes.length);
          }
          const { code, text } = await call(path, bytes);
          assert.ok(!FAULTS.includes(code), `${path} ${bytes.toString('hex')}: ${codeName(code as Code)} ${text}`);
        },
      ),
      { seed: SEED, numRuns: RUNS_A_METHOD * 40, endOnFailure: true },
    );
    await checkSound();
  });

  test('every beginning of a good request', async () => {
    for (const [path, bytes] of Object.entries(GOOD)) {
      const answers = await Promise.all(Array.from(bytes, (_, length) => call(path, bytes.subarray(0, length))));
      for (const [length, { code, text }] of answers.entries())
        assert.ok(!FAULTS.includes(code), `${path} of ${length} bytes: ${codeName(code as Code)} ${text}`);
    }
    await checkSound();
  });

  test('huge and strange metadata', async () => {
    for (const size of [1000, 8000, 20_000, 200_000]) {
      const metadata = new grpc.Metadata();
      metadata.set('x-large', 'm'.repeat(size));
      metadata.set('traceparent', 't'.repeat(Math.min(size, 5000)));
      metadata.set('x-binary-bin', Buffer.alloc(100, 0xff));
      const { code, text } = await call(`${DATA}PingAndWarm`, message({ 1: INSTANCE }), metadata);
      assert.ok(code === Code.OK || size > 8000, `${size} bytes of metadata: ${code} ${text}`);
    }
    await checkSound();
  });

  describe('broken HTTP/2', () => {
    let session: ClientHttp2Session;
    before(() => {
      session = connectHttp2(`http://${address}`);
      session.on('error', () => {});
    });
    after(() => session.destroy());

    const frame = (body: Buffer, { length = body.length, compressed = 0 } = {}): Buffer => {
      const head = Buffer.alloc(5);
      head.writeUInt8(compressed);
      head.writeUInt32BE(length, 1);
      return Buffer.concat([head, body]);
    };

    /** Headers and trailers of the answer together; 'reset' where there is none. */
    function request(headers: IncomingHttpHeaders, body: Buffer, end = true): Promise<IncomingHttpHeaders | 'reset'> {
      return new Promise((resolve) => {
        const stream = session.request({
          ':method': 'POST',
          ':path': `${DATA}MutateRow`,
          'content-type': 'application/grpc',
          te: 'trailers',
          ...headers,
        });
        let seen: IncomingHttpHeaders = {};
        stream.on('response', (given: IncomingHttpHeaders & { readonly ':status'?: number }) => {
          seen = { ...seen, ...given };
          if (seen['grpc-status'] !== undefined || given[':status'] !== 200) resolve(seen);
        });
        stream.on('trailers', (given) => resolve({ ...seen, ...given }));
        stream.on('close', () => resolve('reset'));
        stream.on('error', () => resolve('reset'));
        stream.resume();
        if (end) stream.end(body);
        else stream.write(body);
      });
    }

    const status = (answer: IncomingHttpHeaders | 'reset'): string =>
      answer === 'reset' ? 'reset' : String(answer['grpc-status'] ?? `http ${answer[':status']}`);
    const good = message({ 1: T, 2: 'kept', 3: [setCell()] });

    test('a message that is said to be larger than any may be is refused before it comes', async () => {
      assert.equal(
        status(await request({}, frame(Buffer.alloc(100), { length: 300 * 1024 * 1024 }), false)),
        String(Code.RESOURCE_EXHAUSTED),
      );
    });

    for (const [name, headers, body] of [
      ['a message that ends early', {}, frame(good.subarray(0, 10), { length: good.length })],
      ['half a frame header', {}, Buffer.from([0, 0, 0])],
      ['no message', {}, Buffer.alloc(0)],
      ['two messages', {}, Buffer.concat([frame(good), frame(good)])],
      [
        'a message compressed by something unknown',
        { 'grpc-encoding': 'zstd-of-tomorrow' },
        frame(good, { compressed: 1 }),
      ],
      [
        'a gzipped message that is none',
        { 'grpc-encoding': 'gzip' },
        frame(Buffer.from('this is not gzip'), { compressed: 1 }),
      ],
      ['a content type that is not gRPC', { 'content-type': 'text/html' }, frame(good)],
      ['no content type', { 'content-type': '' }, frame(good)],
      ['a GET', { ':method': 'GET' }, frame(good)],
      ['a path that is none', { ':path': '/' }, frame(good)],
      ['a time-out that is none', { 'grpc-timeout': 'soon' }, frame(Buffer.from([0x0a, 0x05]))],
    ] as const) {
      test(name, { timeout: 20_000 }, async () => {
        assert.notEqual(status(await request(headers, body)), '0');
      });
    }

    test('a thousand calls that are reset at once', async () => {
      await Promise.all(
        Array.from({ length: 1000 }, (_, i) => {
          const stream = session.request({
            ':method': 'POST',
            ':path': `${DATA}${i % 2 ? 'ReadRows' : 'MutateRow'}`,
            'content-type': 'application/grpc',
            te: 'trailers',
          });
          stream.on('error', () => {});
          stream.write(frame(i % 2 ? message({ 1: T }) : good, { length: i % 3 === 0 ? 1_000_000 : good.length }));
          stream.close(constants.NGHTTP2_CANCEL);
          return new Promise((resolve) => stream.on('close', resolve));
        }),
      );
      await checkSound();
    });

    test('a connection that breaks off in the midst of calls', async () => {
      const other = connectHttp2(`http://${address}`);
      other.on('error', () => {});
      for (let i = 0; i < 50; i++) {
        const stream = other.request({
          ':method': 'POST',
          ':path': `${DATA}ReadRows`,
          'content-type': 'application/grpc',
          te: 'trailers',
        });
        stream.on('error', () => {});
        stream.end(frame(message({ 1: T })));
      }
      await new Promise((resolve) => setImmediate(resolve));
      other.destroy();
      await checkSound();
    });
  });

  test('after the server has closed a call fails, and the process lives', async () => {
    await server.close();
    assert.equal((await call(`${DATA}ReadRows`, message({ 1: T }))).code, Code.UNAVAILABLE);
  });
});
