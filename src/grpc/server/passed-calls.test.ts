/** Calls that a thread passes on to another as bytes (docs/decisions/0047-calls-passed-on-as-bytes.md). */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { until } from '../../../test/raw-server.ts';
import { TABLES, Tables } from '../../../test/tables.ts';
import { BigtableError, type ByteString, Code, unavailable } from '../../base/index.ts';
import { callCancelled, CallContext, type ContextOptions, PullStream, pullStreamOf } from '../../env/index.ts';
import {
  CheckAndMutateRowRequestSchema,
  CheckAndMutateRowResponseSchema,
  MutateRowRequestSchema,
  ReadModifyWriteRowRequestSchema,
  ReadModifyWriteRowResponseSchema,
  ReadRowsRequestSchema,
  ReadRowsResponseSchema,
} from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { isNotServing, type PassedWrite } from '../../protocol/index.ts';
import type { RawWrite, ReadPart } from '../../service/index.ts';
import { serverAddress, type TestThread, twoThreads, type TwoThreads } from '../../../test/threads/two-threads.ts';

const TABLE = `${TABLES}t`;
const SPLIT = 'm';

const utf8 = (text: string): Buffer => Buffer.from(text);
const setCell = (value: string) => ({
  mutation: {
    case: 'setCell',
    value: { familyName: 'f', columnQualifier: utf8('q'), timestampMicros: 1000n, value: utf8(value) },
  } as const,
});

function mutateRow(row: ByteString, value: string): Buffer {
  const init = { tableName: TABLE, rowKey: utf8(row), mutations: [setCell(value)] };
  return Buffer.from(toBinary(MutateRowRequestSchema, create(MutateRowRequestSchema, init)));
}

function readRows(init: MessageInitShape<typeof ReadRowsRequestSchema>): Buffer {
  return Buffer.from(toBinary(ReadRowsRequestSchema, create(ReadRowsRequestSchema, { tableName: TABLE, ...init })));
}

/** A field of bytes: 2 is the row of a change. */
function field(number: number, content: string): Buffer {
  return Buffer.concat([Buffer.of((number << 3) | 2, content.length), utf8(content)]);
}

async function drain(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}

describe('a call that is passed on', () => {
  let both: TwoThreads;
  /** The thread that takes the calls, and the one that has their rows, from `start` on. */
  let taker: TestThread;
  let owner: TestThread;
  let tables: Tables;
  let start: ByteString;

  const context = (options: Partial<ContextOptions> = {}): CallContext =>
    new CallContext({ budget: taker.env.requestBudget, ...options });
  const row = (name: string): ByteString => start + name;

  async function open(options: Parameters<typeof twoThreads>[0] = {}): Promise<void> {
    both = await twoThreads(options);
    const [first, second] = both.threads;
    tables = new Tables(first.env, first.client);
    await tables.create('t', { splits: [SPLIT] });
    for (const { env, client } of both.threads) await new Tables(env, client).rows('t');
    const secondHasSplit = first.client.callPasser(serverAddress(0)).isElsewhere(TABLE, SPLIT);
    [taker, owner] = [first, second];
    start = secondHasSplit ? SPLIT : 'a';
    assert.ok(taker.client.callPasser(serverAddress(0)).isElsewhere(TABLE, start));
  }

  beforeEach(async () => {
    await open();
  });
  afterEach(async () => {
    await both.close();
  });

  /** The cells of the row, as the owner has them. */
  const stored = (name: string): Promise<unknown> =>
    new Tables(owner.env, owner.client).read('t', { ranges: [{ start: row(name), end: `${row(name)}\0` }] });

  test('arrives as the bytes that the client sent, with table and row, and its answer comes back', async () => {
    const request = mutateRow(row('1'), 'v');
    assert.deepEqual(await taker.call('MutateRow', request, context()), { messages: [Buffer.alloc(0)] });
    const [{ call } = assert.fail()] = owner.passed;
    const { method, table, row: named, request: bytes } = call as RawWrite;
    assert.deepEqual([method, table, named, Buffer.from(bytes)], ['mutateRow', TABLE, row('1'), request]);

    const check = create(CheckAndMutateRowRequestSchema, {
      tableName: TABLE,
      rowKey: utf8(row('1')),
      trueMutations: [setCell('w')],
    });
    const checked = await taker.call(
      'CheckAndMutateRow',
      Buffer.from(toBinary(CheckAndMutateRowRequestSchema, check)),
      context(),
    );
    assert.equal(fromBinary(CheckAndMutateRowResponseSchema, checked.messages[0]!).predicateMatched, true);

    const append = create(ReadModifyWriteRowRequestSchema, {
      tableName: TABLE,
      rowKey: utf8(row('1')),
      // larger than the space for an answer that is reserved at first
      rules: [
        { familyName: 'f', columnQualifier: utf8('q'), rule: { case: 'appendValue', value: Buffer.alloc(5000, 'x') } },
      ],
    });
    const given = context();
    const appended = await taker.call(
      'ReadModifyWriteRow',
      Buffer.from(toBinary(ReadModifyWriteRowRequestSchema, append)),
      given,
    );
    const cell = fromBinary(ReadModifyWriteRowResponseSchema, appended.messages[0]!).row?.families[0]?.columns[0]
      ?.cells[0];
    assert.equal(cell?.value.length, 5001);
    assert.ok(given.reservation.heldBytes >= 5001, 'the taker holds the space for the answer');
    assert.equal(owner.passed.length, 4);

    const read = await taker.call('ReadRows', readRows({ rows: { rowKeys: [utf8(row('1'))] } }), context());
    const { chunks } = fromBinary(ReadRowsResponseSchema, read.messages[0]!);
    assert.deepEqual([Buffer.from(chunks[0]!.rowKey).toString(), chunks[0]!.value.length], [row('1'), 5001]);
    assert.deepEqual(chunks.at(-1)!.rowStatus, { case: 'commitRow', value: true });
    assert.equal(owner.passed.length, 5);
    assert.equal(owner.peersBudget.usedBytes, 0);
    for (const { context: passed } of owner.passed) assert.equal(passed.reservation.heldBytes, 0);
  });

  test('is for the row that comes last among its fields, whatever their order', async () => {
    const request = Buffer.concat([field(2, 'elsewhere'), mutateRow(row('other'), 'v'), field(2, row('last'))]);
    await taker.call('MutateRow', request, context());
    assert.deepEqual(await stored('last'), [[row('last'), 'v']]);
    assert.deepEqual(await stored('other'), []);
  });

  /** An envelope for a row of the owner, as the taker knows it. */
  async function envelope(request: Buffer, name: string): Promise<PassedWrite> {
    let sent: PassedWrite | undefined;
    owner.intercepts.write = (write) => {
      sent = write as PassedWrite;
      return Promise.reject(new BigtableError(Code.ABORTED, 'seen'));
    };
    await assert.rejects(taker.call('MutateRow', mutateRow(row(name), 'v'), context()), { code: Code.ABORTED });
    owner.intercepts = {};
    return { ...sent!, request };
  }
  const send = (message: PassedWrite): Promise<unknown> =>
    taker.env.transport.call(serverAddress(1), 'passedWrite', message, context());

  test('is refused, and changes nothing, where its bytes name another row or table than its envelope', async () => {
    for (const request of [
      mutateRow(row('forged'), 'v'),
      Buffer.concat([mutateRow(row('named'), 'v'), field(2, row('forged'))]),
      Buffer.concat([mutateRow(row('named'), 'v'), field(1, `${TABLES}other`)]),
    ])
      await assert.rejects(send(await envelope(request, 'named')), { code: Code.INTERNAL, message: /envelope/ });
    for (const name of ['forged', 'named']) assert.deepEqual(await stored(name), []);
    await send(await envelope(Buffer.concat([field(2, row('forged')), mutateRow(row('named'), 'v')]), 'named'));
    assert.deepEqual(await stored('named'), [[row('named'), 'v']]);
  });

  test('reads no rows but those of its envelope', async () => {
    await taker.call('ReadRows', readRows({ rows: { rowKeys: [utf8(row('1'))] } }), context());
    const [{ call } = assert.fail()] = owner.passed;
    for (const init of [
      { rows: { rowKeys: [utf8(row('2'))] } },
      { rows: { rowKeys: [utf8(row('1')), utf8(row('2'))] } },
      {},
      { tableName: `${TABLES}other`, rows: { rowKeys: [utf8(row('1'))] } },
    ]) {
      const message = { ...call, request: readRows(init) };
      const parts = taker.env.transport.stream(serverAddress(1), 'passedRead', message, context());
      await assert.rejects(drain(parts), { code: Code.INTERNAL, message: /envelope/ });
    }
  });

  test('is "not serving" for another incarnation, epoch or tablet', async () => {
    const right = await envelope(mutateRow(row('1'), 'v'), '1');
    for (const wrong of [{ to: 'another' }, { epoch: right.epoch + 1 }, { tableId: '00000fff' }])
      await assert.rejects(send({ ...right, ...wrong }), (error: BigtableError) => isNotServing(error));
    assert.deepEqual(await stored('1'), []);
  });

  test('finds the tablet again where its server has ended and another one has it', async () => {
    await owner.server.close();
    await owner.startServer();
    await taker.call('MutateRow', mutateRow(row('1'), 'v'), context());
    const { messages } = await taker.call('ReadRows', readRows({ rows: { rowKeys: [utf8(row('1'))] } }), context());
    assert.equal(fromBinary(ReadRowsResponseSchema, messages[0]!).chunks.length, 1);
  });

  test('is not sent again where a write may have been carried out', async () => {
    owner.intercepts.write = () => new Promise(() => {});
    const writing = taker.call('MutateRow', mutateRow(row('1'), 'v'), context());
    await until(() => owner.passed.length === 1);
    both.cut();
    await assert.rejects(
      writing,
      (error) => error instanceof BigtableError && error.code === Code.UNAVAILABLE && !isNotServing(error),
    );
    assert.equal(owner.passed.length, 1);
  });

  test('has the deadline of its client, and ends with it', async () => {
    owner.intercepts.write = () => new Promise(() => {});
    const deadlineMs = taker.env.clock.monotonicMs() + 60_000;
    const given = context({ deadlineMs, principal: 'alice', trace: 't1' });
    const writing = taker.call('MutateRow', mutateRow(row('1'), 'v'), given);
    await until(() => owner.passed.length === 1);
    const [{ context: passed } = assert.fail()] = owner.passed;
    assert.ok(Math.abs(passed.deadlineMs - deadlineMs) < 1000);
    assert.deepEqual([passed.principal, passed.trace], ['alice', 't1']);
    given.interrupt(callCancelled());
    await assert.rejects(writing, { code: Code.CANCELLED });
    await until(() => passed.signal!.aborted);
  });

  test('names its caller by its context alone: no call of the API takes an envelope', async () => {
    assert.deepEqual(
      taker.paths.filter((path) => /pass/i.test(path)),
      [],
    );
    const request = Buffer.concat([mutateRow(row('1'), 'v'), field(4, 'mallory'), field(15, 'mallory')]);
    await taker.call('MutateRow', request, context({ principal: 'alice' }));
    assert.equal(owner.passed[0]!.context.principal, 'alice');
  });

  /** Lets a read pass `parts` parts, then fail as the end of its server does. */
  function failAfter(parts: number): void {
    let left = parts;
    owner.intercepts.read = (_read, _context, go) => {
      const inner = go();
      return pullStreamOf(
        (async function* (): AsyncGenerator<ReadPart> {
          for await (const part of inner) {
            if (left-- === 0) throw unavailable('as planned');
            yield part;
          }
        })(),
      );
    };
  }

  test('continues a read after the last row that came, where the tablet moves: every row comes once', async () => {
    const rows = Array.from({ length: 40 }, (_, i) => row(String(i).padStart(3, '0')));
    const value = 'x'.repeat(10_000);
    for (const key of rows) await tables.set('t', key, value);
    const range = {
      startKey: { case: 'startKeyClosed', value: utf8(rows[0]!) },
      endKey: { case: 'endKeyClosed', value: utf8(rows.at(-1)!) },
    } as const;
    for (const rowsLimit of [0n, 30n]) {
      for (const parts of [0, 1, 2]) {
        failAfter(parts);
        const { messages } = await taker.call(
          'ReadRows',
          readRows({ rows: { rowRanges: [range] }, rowsLimit }),
          context(),
        );
        const keys = messages.flatMap((message) =>
          fromBinary(ReadRowsResponseSchema, message).chunks.flatMap(({ rowKey }) =>
            rowKey.length > 0 ? [Buffer.from(rowKey).toString()] : [],
          ),
        );
        assert.deepEqual(keys, rowsLimit === 0n ? rows : rows.slice(0, 30));
      }
    }
  });

  test('fails a read with UNAVAILABLE where its tablet moves in the midst of a row', async () => {
    await tables.set('t', row('1'), 'x'.repeat(2_000_000));
    failAfter(1);
    const reading = taker.call('ReadRows', readRows({ rows: { rowKeys: [utf8(row('1'))] } }), context());
    await assert.rejects(reading, { code: Code.UNAVAILABLE, message: /midst of a row/ });
  });

  test('of a reader that stops is ended at the other side', async () => {
    for (let i = 0; i < 60; i++) await tables.set('t', row(String(i)), 'x'.repeat(50_000));
    let ended = false;
    owner.intercepts.read = (_read, _context, go) => {
      const inner = go();
      return new (class extends PullStream<ReadPart> {
        pull(): ReturnType<typeof inner.pull> {
          return inner.pull();
        }
        end(): void {
          ended = true;
          void inner.end();
        }
      })();
    };
    const message = {
      tableName: TABLE,
      rows: {
        rowRanges: [
          {
            startKey: { case: 'startKeyClosed', value: utf8(start) },
            endKey: { case: 'endKeyOpen', value: utf8(row('z')) },
          } as const,
        ],
      },
    };
    const given = context();
    const reading = taker.call('ReadRows', readRows(message), given);
    await until(() => owner.passed.length === 1);
    given.interrupt(callCancelled());
    await assert.rejects(reading, { code: Code.CANCELLED });
    await until(() => ended);
    assert.equal(owner.peersBudget.usedBytes, 0);
  });
});

test('two threads that are full of their own calls and of each other’s go on', async (t) => {
  const both = await twoThreads({ requestBytes: 64 * 1024 });
  t.after(async () => {
    await both.close();
  });
  const [first] = both.threads;
  await new Tables(first.env, first.client).create('t', { splits: [SPLIT] });
  for (const { env, client } of both.threads) await new Tables(env, client).rows('t');
  const full = both.threads.map(({ env }) => {
    const reservation = env.requestBudget.reservation();
    reservation.force(64 * 1024);
    const waiting = env.requestBudget.reservation();
    return { reservation, waiting: waiting.grow(1024).then(() => waiting.release()) };
  });
  const calls = both.threads.flatMap((thread) =>
    Array.from({ length: 200 }, (_, i) => {
      const context = new CallContext({ budget: thread.env.requestBudget });
      return thread.call('MutateRow', mutateRow(`${i % 2 === 0 ? 'a' : 'z'}${i}`, 'x'.repeat(2000)), context);
    }),
  );
  for (const { messages } of await Promise.all(calls)) assert.equal(messages.length, 1);
  for (const { passed, peersBudget, env } of both.threads) {
    assert.ok(passed.length >= 100);
    assert.equal(peersBudget.usedBytes, 0);
    assert.equal(env.requestBudget.usedBytes, 64 * 1024, 'calls of the other take nothing of its clients’ budget');
  }
  for (const { reservation, waiting } of full) {
    reservation.release();
    await waiting;
  }
});
