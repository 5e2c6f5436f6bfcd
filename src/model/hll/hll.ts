/**
 * HyperLogLog++ as an aggregate: inputs to states, states checked and merged. A state is at most 32 KiB and a few
 * bytes, whatever was counted.
 */
import { type Int64, invalidArgument } from '../../base/index.ts';
import { fingerprint, fingerprintInt64 } from './fingerprint.ts';
import { sparseValueOf } from './register.ts';
import { mergeSketches } from './sketch.ts';
import { decodeSketch, encodeSketch, VALUE_TYPES } from './sketch-codec.ts';

type InputType = 'int64' | 'bytes';

const isInt64Input = (input: Int64 | Uint8Array): input is Int64 =>
  typeof input === 'number' || typeof input === 'bigint';

/** INVALID_ARGUMENT where a family of that input type does not accept the input. */
export function checkHllInput(input: Int64 | Uint8Array, type?: InputType): void {
  const found: InputType = isInt64Input(input) ? 'int64' : 'bytes';
  if (type !== undefined && found !== type)
    throw invalidArgument(`this family's hll aggregate takes inputs of type ${type}, not ${found}`);
}

/** The state that has counted one input. */
export function hllInput(input: Int64 | Uint8Array): Buffer {
  const isInt64 = isInt64Input(input);
  const hash = isInt64 ? fingerprintInt64(input) : fingerprint(input);
  return encodeSketch({
    inputs: 1,
    valueType: isInt64 ? VALUE_TYPES.int64 : VALUE_TYPES.bytes,
    data: { sparse: Uint32Array.of(sparseValueOf(hash)) },
  });
}

/** INVALID_ARGUMENT where the bytes are not a state, or one over inputs of another type than the family's. */
export function checkHllState(state: Uint8Array, type?: InputType): void {
  const { valueType } = decodeSketch(state);
  if (type !== undefined && valueType !== VALUE_TYPES.unsaid && valueType !== VALUE_TYPES[type]) {
    throw invalidArgument(
      `state of aggregate hll: it counts inputs of type number ${valueType}, this family those of type ${type} (number ${VALUE_TYPES[type]})`,
    );
  }
}

export const mergeHll = (a: Uint8Array, b: Uint8Array): Buffer =>
  encodeSketch(mergeSketches(decodeSketch(a), decodeSketch(b)));
