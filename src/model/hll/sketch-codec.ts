/**
 * The state of an HLL++ aggregate as bytes: a protocol buffer that other programs read and write too
 * (docs/formats/aggregates.md). The encoder writes one form; a client's state is checked to the last bit, since a wrong
 * register would spoil every later merge.
 */
import {
  asBuffer,
  type BigtableError,
  invalidArgument,
  VarintReader,
  varintLength,
  writeVarint,
} from '../../base/index.ts';
import { MAX_RANK, isSparseValue, PRECISION, REGISTERS, SPARSE_PRECISION, sparseIndexOf } from './register.ts';
import type { Sketch } from './sketch.ts';

const AGGREGATOR = 112;
const ENCODING_VERSION = 2;
const [VARINT, LENGTH_DELIMITED] = [0, 2];
/** Fields of the outer message. */
const OUTER = { aggregator: 1, inputs: 2, encodingVersion: 3, valueType: 4, state: AGGREGATOR } as const;
/** Fields of the state inside. */
const INNER = { sparseSize: 2, precision: 3, sparsePrecision: 4, registers: 5, sparse: 6 } as const;

/** The format's numbers of the types of inputs. 64-bit integers have two numbers, for one hash. */
export const VALUE_TYPES = { unsaid: 0, signed64: 4, int64: 8, bytes: 11 } as const;

const bad = (what: string): BigtableError => invalidArgument(`state of aggregate hll: ${what}`);

type Fields = Map<number, number | Buffer>;

/** The fields of a message, each of which may occur at most once. */
function fieldsOf(message: Buffer, known: readonly number[], of: string): Fields {
  const fields: Fields = new Map();
  const reader = new VarintReader(message);
  while (reader.offset < message.length) {
    const tag = next(reader);
    const [field, wire] = [Math.floor(tag / 8), tag % 8];
    if (!known.includes(field) || (wire !== VARINT && wire !== LENGTH_DELIMITED))
      throw bad(`${of} has an unknown field (number ${field}, wire type ${wire})`);
    if (fields.has(field)) throw bad(`${of} has field ${field} twice`);
    const value = next(reader);
    if (wire === VARINT) {
      fields.set(field, value);
    } else {
      const end = reader.offset + value;
      if (end > message.length) throw bad(`field ${field} of ${of} runs past the end`);
      fields.set(field, message.subarray(reader.offset, end));
      reader.offset = end;
    }
  }
  return fields;
}

function next(reader: VarintReader): number {
  try {
    return reader.next();
  } catch (error) {
    if (error instanceof RangeError) throw bad(error.message);
    throw error;
  }
}

function numberOf(fields: Fields, field: number, fallback: number): number {
  const value = fields.get(field) ?? fallback;
  if (typeof value !== 'number') throw bad(`field ${field} must be a number`);
  return value;
}

function bytesOf(fields: Fields, field: number): Buffer | undefined {
  const value = fields.get(field);
  if (typeof value === 'number') throw bad(`field ${field} must be bytes`);
  return value;
}

function expect(what: string, found: number, wanted: number): void {
  if (found !== wanted) throw bad(`${what} must be ${wanted}, not ${found}`);
}

/** The sketch in a state. INVALID_ARGUMENT where the bytes are not a state, or one of another precision. */
export function decodeSketch(state: Uint8Array): Sketch {
  const outer = fieldsOf(asBuffer(state), Object.values(OUTER), 'the message');
  expect('the aggregator', numberOf(outer, OUTER.aggregator, 0), AGGREGATOR);
  expect('the encoding version', numberOf(outer, OUTER.encodingVersion, 1), ENCODING_VERSION);
  const found = numberOf(outer, OUTER.valueType, VALUE_TYPES.unsaid);
  const valueType = found === VALUE_TYPES.signed64 ? VALUE_TYPES.int64 : found;
  const message = bytesOf(outer, OUTER.state);
  if (message === undefined) throw bad(`field ${OUTER.state} is missing`);
  const inner = fieldsOf(message, Object.values(INNER), `field ${OUTER.state}`);
  expect('the precision', numberOf(inner, INNER.precision, 0), PRECISION);
  const registers = bytesOf(inner, INNER.registers);
  const sparse = bytesOf(inner, INNER.sparse);
  if (registers !== undefined && registers.length > 0) {
    if (sparse !== undefined && sparse.length > 0) throw bad('it has registers and a sparse list');
    return { inputs: numberOf(outer, OUTER.inputs, 0), valueType, data: { registers: checkRegisters(registers) } };
  }
  expect('the sparse precision', numberOf(inner, INNER.sparsePrecision, 0), SPARSE_PRECISION);
  const data = { sparse: sparseList(sparse ?? Buffer.alloc(0), numberOf(inner, INNER.sparseSize, 0)) };
  return { inputs: numberOf(outer, OUTER.inputs, 0), valueType, data };
}

function checkRegisters(registers: Buffer): Buffer {
  expect('the number of registers', registers.length, REGISTERS);
  for (let i = 0; i < registers.length; i++) {
    if (registers[i]! > MAX_RANK) throw bad(`register ${i} holds ${registers[i]}, the highest is ${MAX_RANK}`);
  }
  return registers;
}

/** Decodes differences between ascending values; each must be the value of some hash, each index must occur once. */
function sparseList(bytes: Buffer, size: number): Uint32Array {
  if (size > bytes.length) throw bad(`${size} sparse values cannot be in ${bytes.length} bytes`);
  const values = new Uint32Array(size);
  const reader = new VarintReader(bytes);
  let value = 0;
  for (let i = 0; i < size; i++) {
    const before = value;
    value += next(reader);
    if (!isSparseValue(value)) throw bad(`${value} is not a sparse value`);
    if (i > 0 && sparseIndexOf(value) <= sparseIndexOf(before))
      throw bad(`sparse value ${value} does not come after ${before}`);
    values[i] = value;
  }
  expect('the length of the sparse list', bytes.length, reader.offset);
  return values;
}

/** The one form of a sketch as bytes. */
export function encodeSketch({ inputs, valueType, data }: Sketch): Buffer {
  const inner = 'sparse' in data ? encodeSparse(data.sparse) : encodeRegisters(data.registers);
  const head = [
    OUTER.aggregator,
    AGGREGATOR,
    OUTER.inputs,
    inputs,
    OUTER.encodingVersion,
    ENCODING_VERSION,
    ...(valueType === 0 ? [] : [OUTER.valueType, valueType]),
  ];
  return Buffer.concat([numbers(head), tagAndLength(OUTER.state, inner.length), inner]);
}

function encodeSparse(sparse: Uint32Array): Buffer {
  const list = Buffer.allocUnsafe(sparse.length * 4);
  let length = 0;
  let before = 0;
  for (const value of sparse) {
    length = writeVarint(list, length, value - before);
    before = value;
  }
  const size = sparse.length === 0 ? [] : [INNER.sparseSize, sparse.length];
  const head = numbers([...size, INNER.precision, PRECISION, INNER.sparsePrecision, SPARSE_PRECISION]);
  return Buffer.concat([head, tagAndLength(INNER.sparse, length), list.subarray(0, length)]);
}

function encodeRegisters(registers: Uint8Array): Buffer {
  const head = numbers([INNER.precision, PRECISION, INNER.sparsePrecision, SPARSE_PRECISION]);
  return Buffer.concat([head, tagAndLength(INNER.registers, registers.length), registers]);
}

/** Number fields: field, value, field, value… */
function numbers(pairs: readonly number[]): Buffer {
  const words = pairs.map((value, i) => (i % 2 === 0 ? value * 8 + VARINT : value));
  return varints(words);
}

const tagAndLength = (field: number, length: number): Buffer => varints([field * 8 + LENGTH_DELIMITED, length]);

function varints(values: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(values.reduce((sum, value) => sum + varintLength(value), 0));
  let at = 0;
  for (const value of values) at = writeVarint(bytes, at, value);
  return bytes;
}
