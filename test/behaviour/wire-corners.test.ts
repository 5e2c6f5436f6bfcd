/**
 * Corners of the Cloud API that the library's words cannot reach, told by bytes made by hand
 * (docs/decisions/0026-corners-of-the-api.md).
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../../src/base/index.ts';
import type { WireClient } from '../../src/wire/index.ts';
import { fieldsOf, message } from '../bad-input/protobuf.ts';
import { DOORS, type OpenDoor, wireClientOf } from './doors.ts';

const TABLE = 'projects/p/instances/i/tables/t';
const NONE = 'projects/p/instances/i/tables/none';
const DATA = '/google.bigtable.v2.Bigtable/';
const DROP = '/google.bigtable.admin.v2.BigtableTableAdmin/DropRowRange';

for (const { name, open } of DOORS.filter((door) => door.isServer)) {
  describe(`corners of the API: ${name}`, () => {
    let door: OpenDoor;
    let client: WireClient;

    before(async () => {
      door = await open();
      client = wireClientOf(door);
      await door.service.createTable(door.context, {
        name: TABLE,
        families: [{ name: 'f' }],
        splits: ['g', 'n'],
        granularity: 'millis',
        deletionProtection: false,
      });
      for (const row of ['a', 'h', 'z']) {
        await door.service.mutateRow(door.context, TABLE, {
          row,
          mutations: [{ kind: 'setCell', family: 'f', qualifier: row, timestamp: 1000, value: Buffer.from(row) }],
        });
      }
    });
    after(async () => {
      client.close();
      await door.close();
    });

    async function answers(path: string, bytes: Buffer): Promise<Buffer[]> {
      const all: Buffer[] = [];
      for await (const answer of client.stream(path, bytes, door.context)) all.push(answer);
      return all;
    }

    /** The rows that a ReadRows returns. */
    async function rowsOf(fields: Parameters<typeof message>[0]): Promise<string> {
      const chunks = (await answers(`${DATA}ReadRows`, message({ 1: TABLE, ...fields }))).flatMap((answer) => [
        ...(fieldsOf(answer).get(1) ?? []),
      ]);
      return chunks.flatMap((chunk) => [...(fieldsOf(chunk as Buffer).get(1) ?? [])]).join(' ');
    }

    test('a drop of all rows that says false drops nothing, of a table that is there', async () => {
      await client.unary(DROP, message({ 1: TABLE, 3: false }), door.context);
      assert.equal(await rowsOf({}), 'a h z');
      await assert.rejects(client.unary(DROP, message({ 1: NONE, 3: false }), door.context), { code: Code.NOT_FOUND });
      await assert.rejects(client.unary(DROP, message({ 1: TABLE }), door.context), { code: Code.INVALID_ARGUMENT });
    });

    test('samples of a range end with its end, those of a range without rows too', async () => {
      const samples = async (range: Buffer): Promise<string[]> =>
        (await answers(`${DATA}SampleRowKeys`, message({ 1: TABLE, 6: range }))).map((answer) =>
          String((fieldsOf(answer).get(1) ?? [''])[0]),
        );
      assert.deepEqual(await samples(message()), ['g', 'n', '']);
      assert.deepEqual(await samples(message({ 1: 'c', 3: 'k' })), ['g', 'k']);
      assert.deepEqual(await samples(message({ 1: 'g', 3: 'n' })), ['n']);
      assert.deepEqual(await samples(message({ 1: 'h' })), ['n', '']);
      assert.deepEqual(await samples(message({ 1: 'c', 3: 'c' })), ['c']);
      assert.deepEqual(await samples(message({ 1: 'c', 4: '' })), ['c']);
      await assert.rejects(answers(`${DATA}SampleRowKeys`, message({ 1: NONE, 6: message({ 1: 'c', 3: 'c' }) })), {
        code: Code.NOT_FOUND,
      });
    });

    test('ranges by their empty bounds', async () => {
      const range = (fields: Parameters<typeof message>[0]): Promise<string> =>
        rowsOf({ 2: message({ 2: [message(fields)] }) });
      for (const start of [1, 2]) {
        assert.equal(await range({ [start]: '', 3: '' }), 'a h z');
        assert.equal(await range({ [start]: 'h', 3: '' }), start === 1 ? 'h z' : 'z');
        assert.equal(await range({ [start]: '', 4: '' }), '');
        assert.equal(await range({ [start]: 'h', 4: '' }), '');
        assert.equal(await range({ [start]: '', 4: 'h' }), 'a h');
      }
    });

    test('a message field that comes in parts is one message', async () => {
      const [h, z] = [message({ 6: 'h' }), message({ 6: 'z' })];
      const filter = (...parts: readonly Buffer[]): Promise<string> => rowsOf({ 3: parts });
      assert.equal(await filter(h), 'h');
      assert.equal(await filter(h, message()), 'h', 'nothing is added to what is set');
      assert.equal(await filter(h, z), 'z', 'of two kinds the last holds');
      const chain = (filters: readonly Buffer[]): Buffer => message({ 1: message({ 1: filters }) });
      assert.equal(await filter(chain([h]), chain([h])), 'h', 'two halves of one chain');
      assert.equal(await rowsOf({ 2: [message({ 1: 'a' }), message({ 1: 'z' })] }), 'a z');
      const check = async (...parts: readonly Buffer[]): Promise<unknown> => {
        const fields = { 1: TABLE, 2: 'h', 4: message({ 2: message({ 1: 'f', 2: 'nothing' }) }), 6: parts };
        return fieldsOf(await client.unary(`${DATA}CheckAndMutateRow`, message(fields), door.context)).get(1)?.[0] ?? 0;
      };
      assert.equal(await check(z), 0);
      assert.equal(await check(z, message()), 0, 'nothing is added to what is set');
      assert.equal(await check(h, message()), 1);
    });
  });
}
