/**
 * The few messages of grpc.testing (grpc/src/proto/grpc/testing/messages.proto) that the interop cases use, read and
 * written by hand: fields by number, as Protocol Buffers put them on the wire. Only what these messages have: varints
 * and length-delimited fields.
 */

/** The fields of a message by number, in order. */
export type Fields = ReadonlyMap<number, readonly (number | Buffer)[]>;

export function readFields(bytes: Buffer): Fields {
  const fields = new Map<number, (number | Buffer)[]>();
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++] ?? 0;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const kind = tag % 8;
    if (kind !== 0 && kind !== 2) throw new Error(`a field of wire type ${kind}`);
    const length = varint();
    const value = kind === 0 ? length : bytes.subarray(at, (at += length));
    const field = fields.get(tag >>> 3) ?? [];
    field.push(value);
    fields.set(tag >>> 3, field);
  }
  return fields;
}

export function numberOf(fields: Fields, field: number): number {
  const value = fields.get(field)?.at(-1) ?? 0;
  return typeof value === 'number' ? value : 0;
}

export function bytesOf(fields: Fields, field: number): Buffer | undefined {
  const value = fields.get(field)?.at(-1);
  return typeof value === 'number' ? undefined : value;
}

export function messagesOf(fields: Fields, field: number): Fields[] {
  return (fields.get(field) ?? []).map((value) => readFields(value as Buffer));
}

function varint(value: number): Buffer {
  const out: number[] = [];
  for (; value >= 128; value = Math.floor(value / 128)) out.push((value % 128) + 128);
  return Buffer.of(...out, value);
}

export function numberField(field: number, value: number): Buffer {
  return Buffer.concat([varint(field * 8), varint(value)]);
}

export function bytesField(field: number, value: Buffer): Buffer {
  return Buffer.concat([varint(field * 8 + 2), varint(value.length), value]);
}

/** Payload { body = 2 } as field 1, which is where answers have it. */
export function payloadOf(bytes: number): Buffer {
  return bytesField(1, bytesField(2, Buffer.alloc(bytes)));
}
