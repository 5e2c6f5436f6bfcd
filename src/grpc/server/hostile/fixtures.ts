/**
 * Hostile requests for each of the 84 calls, made from the descriptors: the good request of the call with one field
 * damaged (`everyDamage`), and any number of random ones (`RandomRequests`): of the right form with whatever values,
 * good ones with fields damaged, and bytes that are changed or cut.
 *
 * Invariant: one seed makes the same requests.
 */
import {
  clone,
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescMethod,
  getOption,
  hasOption,
  type Message,
  ScalarType,
  toBinary,
} from '@bufbuild/protobuf';
import { WireType } from '@bufbuild/protobuf/wire';
import { type ReflectList, type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import type { SeededRandom } from '../../../env/index.ts';
import { field_behavior, FieldBehavior } from '../../generated/google/api/field_behavior_pb.ts';
import { nameOf, STEPS } from '../every-call/fixtures.ts';

export type Damage = 'missing field' | 'wrong name' | 'huge number' | 'deep nesting' | 'bad UTF-8';

/** What a server must answer: any documented status, any error, or INVALID_ARGUMENT. */
export type Expected = 'any' | 'error' | 'INVALID_ARGUMENT';

export interface HostileRequest {
  readonly method: DescMethod;
  readonly damage: Damage;
  /** The field that is damaged, from the request down: "table.column_families". */
  readonly field: string;
  readonly expected: Expected;
  readonly bytes: Buffer;
}

const INSTANCE = 'projects/project/instances/calls';
const TABLE = `${INSTANCE}/tables/t`;
const CLUSTER = `${INSTANCE}/clusters/one`;

/** Names of resources that do not exist, or of another form than any has. */
const WRONG_NAMES = [
  '-',
  '/',
  '..',
  '*',
  '__proto__',
  'projects',
  'projects//instances/',
  `${INSTANCE}/`,
  `${INSTANCE}/tables/none`,
  `${TABLE}/authorizedViews/none/x`,
  `${CLUSTER}/backups/../../x`,
  '\u{10ffff}\0\u202e',
  'x'.repeat(5000),
];
const TEXTS = [
  '',
  'a',
  'f',
  'calls',
  't',
  'constructor',
  '../x',
  'projects/project',
  'projects/project/instances/-',
  'projects/project/locations/z',
  INSTANCE,
  CLUSTER,
  TABLE,
  `${INSTANCE}/clusters/-`,
  `${INSTANCE}/appProfiles/default`,
  `${INSTANCE}/appProfiles/profile`,
  `${INSTANCE}/logicalViews/logical`,
  `${INSTANCE}/materializedViews/materialized`,
  `${CLUSTER}/backups/backup`,
  `${CLUSTER}/backups/-`,
  `${TABLE}/authorizedViews/view`,
  `${TABLE}/schemaBundles/bundle`,
  `${TABLE}/columnFamilies/f`,
  'roles/bigtable.reader',
  'roles/bigtable.admin',
  'allUsers',
  'token:a',
  'bigtable.tables.get',
  'deletion_protection',
  'expire_time',
  'labels',
  'query',
  'subset_view',
  'single_cluster_routing.cluster_id',
  'state:READY AND size_bytes > 0',
  'SELECT 1',
  ...WRONG_NAMES,
];
/** What a field of that name often has. */
const HINTS: Readonly<Record<string, readonly string[]>> = {
  parent: ['projects/project', INSTANCE, INSTANCE, CLUSTER, TABLE, TABLE],
  name: TEXTS.filter((text) => text.startsWith(INSTANCE)),
  resource: TEXTS.filter((text) => text.startsWith(INSTANCE)),
  table_name: [TABLE],
  source_table: [TABLE],
  source_backup: [`${CLUSTER}/backups/backup`],
  backup: [`${CLUSTER}/backups/backup`],
  location: ['projects/project/locations/z'],
  display_name: ['x'],
  app_profile_id: ['', 'a', 'default'],
  logical_view_id: ['a'],
  materialized_view_id: ['a'],
  authorized_view_id: ['a'],
  schema_bundle_id: ['a'],
  backup_id: ['a'],
  cluster_id: ['a', 'one'],
  family_name: ['f'],
  query: ['SELECT 1'],
};
const BYTES = ['', 'a', 'r1', '\0', '\xff', '.*', '(', 'q'.repeat(20_000)].map((text) => Buffer.from(text, 'latin1'));
const MAX_DEPTH = 5;
const DEEP = 3000;

/** The least and the greatest values of a kind of number, and others at which code goes wrong. */
function numbersOf(type: ScalarType): readonly (number | bigint)[] {
  switch (type) {
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return [2n ** 63n - 1n, -(2n ** 63n), -1n, 2n ** 53n + 1n];
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return [2n ** 64n - 1n, 2n ** 63n];
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return [2 ** 32 - 1];
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE:
      return [Number.NaN, Number.POSITIVE_INFINITY, -0, -Number.MAX_VALUE];
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return [2 ** 31 - 1, -(2 ** 31), -1];
    default:
      return [];
  }
}

/** Text that stands for bytes that are not UTF-8, and those bytes: as long, so that no length changes. */
const NOT_UTF8_HERE = Buffer.from('\u0001not utf-8\u0001');
const NOT_UTF8 = Buffer.from([0x66, 0xff, 0xfe, 0xc0, 0xaf, 0xed, 0xa0, 0x80, 0xf8, 0x80, 0x9f]);

function encoded(desc: DescMessage, message: Message): Buffer {
  const bytes = Buffer.from(toBinary(desc, message));
  for (let at = bytes.indexOf(NOT_UTF8_HERE); at >= 0; at = bytes.indexOf(NOT_UTF8_HERE)) NOT_UTF8.copy(bytes, at);
  return bytes;
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 0x80) return Buffer.from([...bytes, rest]);
    bytes.push((rest & 0x7f) | 0x80);
  }
}
const withLength = (bytes: Buffer): Buffer => Buffer.concat([varint(bytes.length), bytes]);

/** A message within messages, `depth` deep: of a kind that may hold itself. */
function nestedBytes(desc: DescMessage, depth: number): Buffer {
  // from the innermost outwards: each head says how long what follows is
  const heads: Buffer[] = [];
  let length = 0;
  for (const number of pathInto(desc, depth).reverse()) {
    const head = Buffer.concat([varint(number * 8 + 2), varint(length)]);
    heads.push(head);
    length += head.length;
  }
  return Buffer.concat(heads.reverse());
}

/** The numbers of fields that lead from a message into ever deeper ones. */
function pathInto(desc: DescMessage, depth: number): number[] {
  const path: number[] = [];
  for (let at = desc; path.length < depth; ) {
    const next = at.fields.find(({ message }) => message !== undefined && reaches(message, message));
    if (next === undefined) break;
    path.push(next.number);
    at = next.message!;
  }
  return path;
}

/** True when a message of the kind `from` may hold one of the kind `to`, at any depth. */
function reaches(from: DescMessage, to: DescMessage, seen = new Set<string>()): boolean {
  return from.fields.some(({ message }) => {
    if (message === undefined || seen.has(message.typeName)) return false;
    seen.add(message.typeName);
    return message.typeName === to.typeName || reaches(message, to, seen);
  });
}

/** Unknown groups within one another: readers skip them. */
const GROUPS = Buffer.concat([
  Buffer.concat(new Array<Buffer>(DEEP).fill(varint(2000 * 8 + 3))),
  Buffer.concat(new Array<Buffer>(DEEP).fill(varint(2000 * 8 + 4))),
]);

const isRequired = (field: DescField): boolean =>
  hasOption(field, field_behavior) && getOption(field, field_behavior).includes(FieldBehavior.REQUIRED);

const GOOD = new Map(
  STEPS.map(({ method, request }) => [
    nameOf(method),
    create(method.input, request({ consistencyToken: 'x' }) as never) as Message,
  ]),
);
/** The good request of a call. */
const goodRequest = (method: DescMethod): Message => clone(method.input, GOOD.get(nameOf(method))!);

/** A field of a message that is in a request. */
interface Place {
  readonly into: ReflectMessage;
  readonly field: DescField;
  readonly path: string;
}

/** The fields of a message, and of those that are set in it. */
function placesOf(into: ReflectMessage, path = ''): Place[] {
  return into.fields.flatMap((field) => {
    const place = { into, field, path: `${path}${field.name}` };
    if (!into.isSet(field)) return [place];
    const inner: ReflectMessage[] = [];
    if (field.fieldKind === 'message') inner.push(into.get(field));
    if (field.fieldKind === 'list' && field.listKind === 'message')
      inner.push(...(into.get(field) as ReflectList<ReflectMessage>));
    if (field.fieldKind === 'map' && field.mapKind === 'message')
      inner.push(...(into.get(field).values() as Iterable<ReflectMessage>));
    return [place, ...inner.flatMap((each, i) => placesOf(each, `${place.path}${inner.length > 1 ? `[${i}]` : ''}.`))];
  });
}

/** The values that do that damage to a field; none where it has no such values. */
function valuesOf(damage: Damage, field: DescField): readonly unknown[] {
  const type = field.scalar;
  if (damage === 'huge number') {
    if (field.enum !== undefined) return [2 ** 31 - 1, -1];
    return type === undefined ? [] : numbersOf(type);
  }
  if (type !== ScalarType.STRING) return [];
  return damage === 'wrong name' ? WRONG_NAMES : [NOT_UTF8_HERE.toString()];
}

/** Puts a value where a field has one value, a list of one, or a map with it: as its key if that is text. */
function put({ into, field }: Place, value: unknown): void {
  if (field.fieldKind === 'list') into.get(field).add(value as never);
  else if (field.fieldKind !== 'map') into.set(field, value as never);
  else if (field.mapKey === ScalarType.STRING && field.mapKind !== 'message') into.get(field).set('k', value as never);
}

/** Fields that the definition requires, without which Edubba answers OK all the same. */
const NOT_NEEDED = /^(permissions|ignore_warnings)$|^entries/;
/** An entry of a batch that is malformed fails by itself: the call is OK. */
const OF_ENTRY = /^entries/;

/**
 * The good request of a call with one of its fields damaged: a request for each field and damage, with one of the
 * damage's values, or with each (`allValues`).
 */
export function* everyDamage(method: DescMethod, { allValues = false } = {}): Generator<HostileRequest> {
  const good = goodRequest(method);
  const { input } = method;
  const request = (damage: Damage, field: string, expected: Expected, bytes: Buffer): HostileRequest => ({
    method,
    damage,
    field,
    expected,
    bytes,
  });
  for (const [i, { into, field, path }] of placesOf(reflect(input, good)).entries()) {
    const changed = (change: (place: Place) => void): Buffer => {
      const copy = clone(input, good);
      change(placesOf(reflect(input, copy))[i]!);
      return encoded(input, copy);
    };
    if (into.isSet(field)) {
      const bytes = changed((place) => place.into.clear(field));
      yield request('missing field', path, isRequired(field) && !NOT_NEEDED.test(path) ? 'error' : 'any', bytes);
    }
    for (const damage of ['wrong name', 'huge number', 'bad UTF-8'] as const) {
      const values = valuesOf(damage, field);
      // another one for each field
      const wanted = allValues || values.length === 0 ? values : [values[i % values.length]];
      const expected = damage === 'bad UTF-8' && !OF_ENTRY.test(path) ? 'INVALID_ARGUMENT' : 'any';
      for (const value of wanted)
        yield request(
          damage,
          path,
          expected,
          changed((place) => put(place, value)),
        );
    }
    const { message } = field;
    if (message === undefined || !reaches(message, message)) continue;
    const data = nestedBytes(message, DEEP);
    const bytes = changed((place) => {
      const unknown = { no: field.number, wireType: WireType.LengthDelimited, data: withLength(data) };
      place.into.message.$unknown = [unknown];
    });
    yield request('deep nesting', path, OF_ENTRY.test(path) ? 'any' : 'error', bytes);
  }
  yield request('deep nesting', '', 'any', Buffer.concat([encoded(input, good), GROUPS]));
}

export class RandomRequests {
  readonly #random: SeededRandom;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  /** Bytes of a request: of the right form mostly. */
  bytes(method: DescMethod): Buffer {
    const message = this.#chance(0.5) ? this.#message(method.input, 0) : this.#damaged(method);
    const bytes = encoded(method.input, message);
    if (this.#chance(0.9) || bytes.length === 0) return bytes;
    if (this.#chance(0.1)) return Buffer.concat([bytes, GROUPS]);
    if (this.#chance(0.5)) return bytes.subarray(0, this.#below(bytes.length));
    bytes[this.#below(bytes.length)] = this.#below(256);
    return bytes;
  }

  /** The good request with up to three of its fields damaged. */
  #damaged(method: DescMethod): Message {
    const message = goodRequest(method);
    for (let left = this.#below(4); left > 0; left--) {
      const places = placesOf(reflect(method.input, message));
      if (places.length === 0) return message;
      const place = this.#of(places);
      const damage = this.#of(['missing field', 'wrong name', 'huge number', 'bad UTF-8'] as const);
      const values = valuesOf(damage, place.field);
      if (damage === 'missing field') place.into.clear(place.field);
      else if (values.length > 0) put(place, this.#of(values));
      else this.#set(place.into, place.field, MAX_DEPTH - 2);
    }
    return message;
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

  #hinted(field: string): string | undefined {
    const hints = HINTS[field];
    return hints !== undefined && this.#chance(0.7) ? this.#of(hints) : undefined;
  }

  #scalar(type: ScalarType): string | number | bigint | boolean | Uint8Array {
    if (type === ScalarType.STRING) return this.#of(TEXTS);
    if (type === ScalarType.BYTES) return this.#of(BYTES);
    if (type === ScalarType.BOOL) return this.#chance(0.5);
    const numbers = numbersOf(type);
    const small = typeof numbers[0] === 'bigint' ? [0n, 1n, 1000n] : [0, 1, 2, 100];
    return this.#of([...small, ...numbers]);
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
