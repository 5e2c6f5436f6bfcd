/**
 * Requests that are made from the API's descriptors: of the right form, with whatever values. Each of the 84 calls
 * answers each with a documented status, and the server serves afterwards.
 *
 * EDUBBA_HOSTILE_REQUESTS: how many; EDUBBA_HOSTILE_SEED: from which seed. The seed is printed.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescMethod,
  type Message,
  ScalarType,
  toBinary,
} from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import { BigtableError, Code, codeName } from '../../base/index.ts';
import { openDatabase } from '../../boot/index.ts';
import { SeededRandom } from '../../env/index.ts';
import { apiServer } from '../fixtures.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { BigtableTableAdmin } from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { Bigtable } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { registerCloudApi } from './cloud-api.ts';

const METHODS: readonly DescMethod[] = [Bigtable, BigtableTableAdmin, BigtableInstanceAdmin].flatMap(
  (service): readonly DescMethod[] => service.methods,
);
/** UNKNOWN, INTERNAL and DATA_LOSS are faults of the server, and so is DEADLINE_EXCEEDED: no call takes long. */
const DOCUMENTED = new Set<number>([
  Code.OK,
  Code.INVALID_ARGUMENT,
  Code.NOT_FOUND,
  Code.ALREADY_EXISTS,
  Code.PERMISSION_DENIED,
  Code.RESOURCE_EXHAUSTED,
  Code.FAILED_PRECONDITION,
  Code.ABORTED,
  Code.OUT_OF_RANGE,
  Code.UNIMPLEMENTED,
]);

const INSTANCE = 'projects/p/instances/i';
const TABLE = `${INSTANCE}/tables/t`;
const TEXTS = [
  '',
  '-',
  'a',
  'f',
  'i',
  't',
  '*',
  '__proto__',
  'constructor',
  '../x',
  'projects/p',
  'projects/p/instances/-',
  INSTANCE,
  `${INSTANCE}/clusters/edubba`,
  `${INSTANCE}/clusters/c`,
  `${INSTANCE}/appProfiles/default`,
  `${INSTANCE}/logicalViews/a`,
  `${INSTANCE}/materializedViews/a`,
  'projects/p/locations/z',
  TABLE,
  `${TABLE}/authorizedViews/a`,
  `${TABLE}/schemaBundles/a`,
  `${INSTANCE}/tables/none`,
  `${TABLE}/columnFamilies/f`,
  'roles/bigtable.reader',
  'allUsers',
  'token:a',
  'bigtable.tables.get',
  'deletion_protection',
  'labels',
  'query',
  'subset_view',
  'single_cluster_routing.cluster_id',
  'SELECT 1',
  '\u{10ffff}\0',
  'x'.repeat(5000),
];
const HINTS: Readonly<Record<string, readonly string[]>> = {
  parent: ['projects/p', INSTANCE, INSTANCE, TABLE, TABLE],
  name: TEXTS.filter((text) => text.startsWith(INSTANCE)),
  table_name: [TABLE],
  location: ['projects/p/locations/z'],
  display_name: ['x'],
  app_profile_id: ['', 'a', 'default'],
  logical_view_id: ['a'],
  materialized_view_id: ['a'],
  authorized_view_id: ['a'],
  cluster_id: ['c', 'edubba'],
  family_name: ['f'],
  query: ['SELECT 1'],
};
const MAX_DEPTH = 5;

class Requests {
  readonly #random: SeededRandom;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  /** Bytes of a request: of the right form mostly. */
  bytes(desc: DescMessage): Buffer {
    const bytes = Buffer.from(toBinary(desc, this.#message(desc, 0)));
    if (this.#chance(0.9) || bytes.length === 0) return bytes;
    if (this.#chance(0.5)) return bytes.subarray(0, this.#below(bytes.length));
    bytes[this.#below(bytes.length)] = this.#below(256);
    return bytes;
  }

  #message(desc: DescMessage, depth: number): Message {
    const message = create(desc);
    const into = reflect(desc, message);
    for (const field of desc.fields) {
      if (depth < MAX_DEPTH && this.#chance(depth === 0 ? 0.7 : 0.45)) this.#set(into, field, depth);
    }
    return message;
  }

  #set(into: ReflectMessage, field: DescField, depth: number): void {
    switch (field.fieldKind) {
      case 'scalar':
        return into.set(field, this.#hinted(field.name) ?? this.#scalar(field.scalar));
      case 'enum':
        return into.set(field, this.#enum(field.enum));
      case 'message':
        return into.set(field, reflect(field.message, this.#message(field.message, depth + 1)));
      case 'list':
        for (let left = this.#below(4); left > 0; left--) {
          const item =
            field.listKind === 'message'
              ? reflect(field.message, this.#message(field.message, depth + 1))
              : field.listKind === 'enum'
                ? this.#enum(field.enum)
                : this.#scalar(field.scalar);
          into.get(field).add(item);
        }
        return;
      case 'map':
        for (let left = this.#below(3); left > 0; left--) {
          const value =
            field.mapKind === 'message'
              ? reflect(field.message, this.#message(field.message, depth + 1))
              : field.mapKind === 'enum'
                ? this.#enum(field.enum)
                : this.#scalar(field.scalar);
          into.get(field).set(this.#scalar(field.mapKey) as string, value);
        }
    }
  }

  /** What a field of that name often has. */
  #hinted(field: string): string | undefined {
    const hints = HINTS[field];
    return hints !== undefined && this.#chance(0.7) ? this.#of(hints) : undefined;
  }

  #scalar(type: ScalarType): string | number | bigint | boolean | Uint8Array {
    switch (type) {
      case ScalarType.STRING:
        return this.#of(TEXTS);
      case ScalarType.BYTES:
        return Buffer.from(this.#of(['', 'a', 'r1', '\0', '\xff', '.*', '(', 'q'.repeat(20_000)]), 'latin1');
      case ScalarType.BOOL:
        return this.#chance(0.5);
      case ScalarType.INT64:
      case ScalarType.SINT64:
      case ScalarType.SFIXED64:
        return this.#of([0n, 1n, -1n, 1000n, 2n ** 63n - 1n, -(2n ** 63n)]);
      case ScalarType.UINT64:
      case ScalarType.FIXED64:
        return this.#of([0n, 1n, 2n ** 64n - 1n]);
      case ScalarType.UINT32:
      case ScalarType.FIXED32:
        return this.#of([0, 1, 2 ** 32 - 1]);
      case ScalarType.FLOAT:
      case ScalarType.DOUBLE:
        return this.#of([0, 1, -1.5, Number.NaN, Number.POSITIVE_INFINITY]);
      default:
        return this.#of([0, 1, 2, -1, 100, 2 ** 31 - 1, -(2 ** 31)]);
    }
  }

  #enum({ values }: DescEnum): number {
    return this.#chance(0.1) ? 99 : this.#of(values).number;
  }

  #of<T>(all: readonly T[]): T {
    return all[this.#below(all.length)]!;
  }

  #below(count: number): number {
    return Math.floor(this.#random.float() * count);
  }

  #chance(probability: number): boolean {
    return this.#random.float() < probability;
  }
}

describe('requests made from the descriptors', () => {
  const count = Number(process.env.EDUBBA_HOSTILE_REQUESTS ?? 4200);
  const seed = Number(process.env.EDUBBA_HOSTILE_SEED ?? 1);
  let opened: Awaited<ReturnType<typeof openDatabase>>;
  let wire: Awaited<ReturnType<typeof apiServer>>;

  before(async () => {
    opened = await openDatabase({ memory: true });
    const { service, env } = opened;
    await service.appProfiles?.start();
    await service.authorizedViews?.start();
    wire = await apiServer(env, (server) => void registerCloudApi(server, service, env));
  });
  after(async () => {
    await wire.close();
    opened.service.appProfiles?.stop();
    opened.service.authorizedViews?.stop();
    await opened.close();
  });

  const pathOf = (method: DescMethod): string => `/${method.parent.typeName}/${method.name}`;
  const send = (method: DescMethod, bytes: Uint8Array) => wire.call(pathOf(method), [Buffer.from(bytes)]);

  test(`each of the 84 calls answers ${count} of them with a documented status, from seed ${seed}`, async () => {
    const createTable = BigtableTableAdmin.method.createTable;
    const table = { parent: INSTANCE, tableId: 't', table: { columnFamilies: { f: {} } } };
    const row = { tableName: TABLE, rowKey: Buffer.from('r1') };
    const codes = new Map<string, number>();
    const requests = new Requests(new SeededRandom(seed));
    for (let sent = 0; sent < count; ) {
      // hostile requests delete it
      await send(createTable, toBinary(createTable.input, create(createTable.input, table)));
      const batch = METHODS.slice(0, count - sent);
      await Promise.all(
        batch.map(async (method) => {
          const bytes = requests.bytes(method.input);
          const { code, message } = await send(method, bytes);
          const words = `${method.name} ${bytes.toString('base64').slice(0, 3000)}: ${code} ${message}`;
          assert.ok(DOCUMENTED.has(code), words);
          assert.ok(message.length < 3000, words);
          const key = `${pathOf(method)} ${codeName(new BigtableError(code as Code, '').code)}`;
          codes.set(key, (codes.get(key) ?? 0) + 1);
        }),
      );
      sent += batch.length;
    }
    const answered = new Set([...codes.keys()].map((key) => key.split(' ')[0]));
    assert.equal(answered.size, Math.min(count, METHODS.length));
    const well = [...codes.keys()].filter((key) => key.endsWith(' OK')).length;
    assert.ok(well >= Math.min(15, count / 200), `${well} of the calls are answered OK at least once`);
    const { mutateRow } = Bigtable.method;
    await send(createTable, toBinary(createTable.input, create(createTable.input, table)));
    const { code } = await send(mutateRow, toBinary(mutateRow.input, create(mutateRow.input, row)));
    assert.equal(code, Code.INVALID_ARGUMENT, 'the server still serves');
  });
});
