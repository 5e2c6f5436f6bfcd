/**
 * Protobuf messages made by hand, so that they may be wrong in any way; and the names of an API's methods, from its
 * definition.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export type FieldValue = string | number | bigint | boolean | Uint8Array | readonly FieldValue[];

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  for (let rest = BigInt.asUintN(64, value); ; ) {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    if (rest === 0n) return Buffer.from([...bytes, low]);
    bytes.push(low | 0x80);
  }
}

/** A field: text and bytes (messages too) with their length, numbers as varints, lists as the field repeated. */
export function field(number: number, value: FieldValue): Buffer {
  if (Array.isArray(value)) return Buffer.concat(value.map((each: FieldValue) => field(number, each)));
  if (typeof value === 'string' || value instanceof Uint8Array) {
    const bytes = Buffer.from(value as string);
    return Buffer.concat([varint(BigInt(number * 8 + 2)), varint(BigInt(bytes.length)), bytes]);
  }
  return Buffer.concat([varint(BigInt(number * 8)), varint(BigInt(value as number | bigint | boolean))]);
}

/** Fields by their numbers, ascending. */
export function message(fields: Readonly<Record<number, FieldValue>> = {}): Buffer {
  return Buffer.concat(Object.entries(fields).map(([number, value]) => field(Number(number), value)));
}

/** The values of a message of varints and length-delimited fields, by field, in order. */
export function fieldsOf(bytes: Buffer): ReadonlyMap<number, readonly (number | Buffer)[]> {
  const fields = new Map<number, (number | Buffer)[]>();
  let at = 0;
  const next = (): number => {
    let value = 0;
    for (let unit = 1; ; unit *= 128) {
      const byte = bytes[at++] as number;
      value += (byte & 0x7f) * unit;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = next();
    const value = next();
    const isVarint = (tag & 7) === 0;
    fields.set(tag >> 3, [...(fields.get(tag >> 3) ?? []), isVarint ? value : bytes.subarray(at, at + value)]);
    if (!isVarint) at += value;
  }
  return fields;
}

/** "/package.Service/Method" of every method of a definition in proto/. */
export function methodsOf(definition: string): string[] {
  const text = readFileSync(join(process.cwd(), 'proto', definition), 'utf8');
  const package_ = /^package ([\w.]+);/m.exec(text)?.[1];
  const service = /^service (\w+) /m.exec(text)?.[1];
  return [...text.matchAll(/^ {2}rpc (\w+) /gm)].map(([, method]) => `/${package_}.${service}/${method}`);
}
