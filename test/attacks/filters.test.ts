/**
 * Reads whose filter, or set of rows, is made to cost as much as it can: others are answered meanwhile, and the
 * server's memory stays bounded.
 */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { BigtableError, Code } from '../../src/base/index.ts';
import { RowMutation } from '../../src/embedded/index.ts';
import { ByteBudget, requestContext } from '../../src/env/index.ts';
import { systemClock, systemRandom } from '../../src/platform/index.ts';
import { WireClient } from '../../src/wire/index.ts';
import { type FieldValue, message } from '../bad-input/protobuf.ts';
import { Victim } from './victim.ts';

const TABLE = 'projects/local/instances/local/tables/attacked';
const DATA = '/google.bigtable.v2.Bigtable/';
const MAX_RSS_BYTES = 1024 * 1024 * 1024;

// google.bigtable.v2.RowFilter
const PASS = message({ 17: true });
const chain = (filters: readonly Buffer[]): Buffer => message({ 1: message({ 1: filters }) });
const interleave = (filters: readonly Buffer[]): Buffer => message({ 2: message({ 1: filters }) });
const rowKeyRegex = (text: string): Buffer => message({ 4: text });
const valueRegex = (text: string): Buffer => message({ 9: text });
const STRIP = message({ 13: true });
const times = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one);

interface Answer {
  /** OK where it is undefined. */
  readonly error: BigtableError | undefined;
  readonly bytes: number;
}

class Attacker {
  readonly victim: Victim;
  readonly #client: WireClient;
  readonly #abort = new AbortController();

  private constructor(t: TestContext, victim: Victim) {
    this.victim = victim;
    const errorOf = ({ code, message: text }: { code: Code; message: string }): BigtableError =>
      new BigtableError(code, text);
    this.#client = new WireClient({ address: victim.address, clock: systemClock, random: systemRandom, errorOf });
    t.after(() => this.#client.close());
  }

  static async start(t: TestContext, words: readonly string[] = []): Promise<Attacker> {
    const victim = await Victim.start(t, { words });
    const database = await victim.database();
    await database.createTable('attacked', { families: { f: {} } });
    return new Attacker(t, victim);
  }

  async put(row: string, cells: Readonly<Record<string, Buffer>>): Promise<void> {
    const mutation = new RowMutation(row);
    for (const [column, value] of Object.entries(cells)) mutation.set(`f:${column}`, value);
    await (await this.victim.database()).table('attacked').apply(mutation);
  }

  read(fields: Readonly<Record<number, FieldValue>>, deadlineMs?: number): Promise<Answer> {
    return this.#call('ReadRows', { 1: TABLE, ...fields }, deadlineMs);
  }

  check(fields: Readonly<Record<number, FieldValue>>, deadlineMs?: number): Promise<Answer> {
    return this.#call('CheckAndMutateRow', { 1: TABLE, ...fields }, deadlineMs);
  }

  /** Ends all calls. */
  giveUp(): void {
    this.#abort.abort();
  }

  async hasBoundedMemory(): Promise<void> {
    const { peakRssBytes } = await this.victim.memory();
    assert.ok(peakRssBytes < MAX_RSS_BYTES, `${peakRssBytes} bytes were resident`);
  }

  async #call(
    method: string,
    fields: Readonly<Record<number, FieldValue>>,
    deadlineMs = Number.POSITIVE_INFINITY,
  ): Promise<Answer> {
    const context = requestContext({
      budget: new ByteBudget(1e9),
      signal: this.#abort.signal,
      deadlineMs: systemClock.monotonicMs() + deadlineMs,
    });
    let bytes = 0;
    try {
      for await (const part of this.#client.stream(`${DATA}${method}`, message(fields), context)) bytes += part.length;
      return { error: undefined, bytes };
    } catch (error) {
      assert.ok(error instanceof BigtableError, String(error));
      return { error, bytes };
    }
  }
}

/** Bytes of x and y without a pattern. */
function noise(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  let state = 1;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    bytes[i] = (state >>> 16) & 1 ? 0x78 : 0x79;
  }
  return bytes;
}

/** Some 9,000 instructions of which half are tried on each byte; no state comes twice. */
const SLOW = `[xy]*x${'[xy]{900}'.repeat(9)}z`;

describe('copies of cells', () => {
  test('a small chain of interleaves that multiplies a cell beyond all memory, or for ever, is refused', async (t) => {
    const attacker = await Attacker.start(t);
    await attacker.put('row', { q: Buffer.from('v') });
    const kills = chain(times(30, interleave(times(40, PASS))));
    const hangs = chain([...times(64, interleave([PASS, PASS])), valueRegex('nothing')]);
    for (const filter of [kills, hangs]) {
      const { error } = await attacker.read({ 3: filter }, 60_000);
      assert.equal(error?.code, Code.INVALID_ARGUMENT);
      assert.match(error?.message ?? '', /the limit is 16384/);
      const checked = await attacker.check({ 2: 'row', 4: [message({ 4: message() })], 6: filter }, 60_000);
      assert.equal(checked.error?.code, Code.INVALID_ARGUMENT);
    }
    await attacker.victim.answerOthers();
    await attacker.hasBoundedMemory();
  });

  test('as many copies as are taken, of each of 100,000 cells', async (t) => {
    const attacker = await Attacker.start(t);
    for (let row = 0; row < 10; row++) {
      await attacker.put(
        `row${row}`,
        Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`q${i}`, Buffer.from('v')])),
      );
    }
    const many = chain([...times(3, interleave(times(16, PASS))), valueRegex('nothing')]);
    const attack = Promise.all(times(3, many).map((filter) => attacker.read({ 3: filter })));
    await attacker.victim.answerOthersDuring(attack);
    attacker.giveUp();
    await attack;
    await attacker.hasBoundedMemory();
  });

  test('a large value a thousand times over is ended by what a row may hold', async (t) => {
    const attacker = await Attacker.start(t);
    await attacker.put('row', { q: Buffer.alloc(20 * 1024 * 1024, 'v') });
    const { error, bytes } = await attacker.read({ 3: interleave(times(1000, PASS)) }, 120_000);
    assert.equal(error?.code, Code.RESOURCE_EXHAUSTED);
    assert.match(error?.message ?? '', /268435456 bytes of one row, by copies/);
    assert.ok(bytes < 300 * 1024 * 1024, `${bytes} bytes came`);
    await attacker.hasBoundedMemory();
  });
});

describe('regular expressions', () => {
  test('a program of 90,000 instructions is refused', async (t) => {
    const attacker = await Attacker.start(t);
    await attacker.put('x'.repeat(60_000), { q: Buffer.from('v') });
    for (const filter of [rowKeyRegex(`${'.{0,900}'.repeat(50)}b`), valueRegex(`${'.{0,900}'.repeat(50)}b`)]) {
      const { error } = await attacker.read({ 3: filter }, 60_000);
      assert.equal(error?.code, Code.INVALID_ARGUMENT);
      assert.match(error?.message ?? '', /too large \(limit: 10000 instructions\)/);
    }
  });

  for (const words of [[], ['--tablet-servers', '2']]) {
    test(`a slow one on a value of 4 MB and on keys of 60 KB (${words.join(' ') || 'one tablet server'})`, async (t) => {
      const attacker = await Attacker.start(t, words);
      await attacker.put('value', { q: noise(4 * 1024 * 1024) });
      for (let row = 0; row < 10; row++)
        await attacker.put(`${noise(60_000).toString('latin1')}${row}`, { q: Buffer.from('v') });
      const attack = Promise.all([attacker.read({ 3: valueRegex(SLOW) }), attacker.read({ 3: rowKeyRegex(SLOW) })]);
      await attacker.victim.answerOthersDuring(attack);
      attacker.giveUp();
      await attack;
      await attacker.hasBoundedMemory();
      assert.equal(await attacker.victim.stop(), 0, attacker.victim.err);
    });
  }

  test('the deadline ends a check of a row, nothing is written, and the row is free again', async (t) => {
    const attacker = await Attacker.start(t);
    await attacker.put('row', { q: noise(4 * 1024 * 1024) });
    const setCell = message({ 1: message({ 1: 'f', 2: 'written', 3: 1000, 4: 'v' }) });
    const check = attacker.check({ 2: 'row', 4: [setCell], 5: [setCell], 6: valueRegex(SLOW) }, 2000);
    await attacker.victim.answerOthersDuring(new Promise(() => {}));
    assert.equal((await check).error?.code, Code.DEADLINE_EXCEEDED);
    // waits for the row, which the check held alone
    await attacker.put('row', { after: Buffer.from('v') });
    const row = await (await attacker.victim.database()).table('attacked').get('row');
    assert.deepEqual(
      row?.cells.map(({ column }) => column),
      ['f:after', 'f:q'],
    );
  });

  test('a needle in a value of 100 MiB is found', async (t) => {
    const attacker = await Attacker.start(t);
    const value = Buffer.alloc(100 * 1024 * 1024, 'x');
    value.write('foo', 90 * 1024 * 1024);
    await attacker.put('row', { q: value });
    const found = await attacker.read({ 3: chain([valueRegex('.*foo.*'), STRIP]) }, 120_000);
    assert.equal(found.error, undefined);
    assert.ok(found.bytes > 0);
    const none = await attacker.read({ 3: chain([valueRegex('[xo]*'), STRIP]) }, 120_000);
    assert.deepEqual({ error: none.error, bytes: none.bytes }, { error: undefined, bytes: 0 });
  });
});

describe('sets of rows', () => {
  const keys = (count: number): Buffer[] =>
    Array.from({ length: count }, (_, i) => Buffer.from(`k${(i * 7919) % (count + 3)}`));

  test('a million keys, and a hundred thousand ranges, none of which is there', async (t) => {
    const attacker = await Attacker.start(t);
    await attacker.put('row', { q: Buffer.from('v') });
    const ranges = keys(100_000).map((key) => message({ 1: key, 3: Buffer.concat([key, Buffer.from('\x01')]) }));
    for (const rows of [message({ 1: keys(1_000_000) }), message({ 2: ranges })]) {
      const attack = Promise.all([attacker.read({ 2: rows })]);
      await attacker.victim.answerOthersDuring(attack);
      for (const { error } of await attack) assert.equal(error, undefined);
    }
    await attacker.hasBoundedMemory();
  });
});
