/**
 * Gathers records into the bytes of one append. Format: docs/formats/commit-log.md.
 *
 * Hot path of every write. Small fields are copied into slabs that are reused. A large value becomes a part of its own
 * and is not copied, so its bytes must not change until the append is durable.
 *
 * Invariant: a record that cannot be encoded, or is too large, leaves the encoder as it was.
 */
import {
  assert,
  type ByteString,
  copyBytes,
  type Int64,
  utf8,
  varintLength,
  viewOf,
  writeInt64BE,
  writeVarint,
} from '../base/index.ts';
import type { Pacer } from '../env/index.ts';
import {
  type CellRun,
  columnAt,
  isCellRun,
  mergedState,
  type Mutation,
  type Mutations,
  type RowMutations,
  type RowRange,
  sliceMutations,
  timestampAt,
} from '../model/index.ts';
import {
  APPEND_VERSION,
  AppendField,
  type AppendHeader,
  MutationKind,
  RangeFlag,
  RecordField,
  RecordKind,
} from './append-format.ts';
import type { LogRecord, NewRecord } from './record.ts';

const SLAB_BYTES = 128 << 10;
/** Values from this size on are not copied. */
const LARGE_VALUE_BYTES = 32 << 10;
/** Strings up to this length are copied by a loop. */
const SHORT_TEXT = 24;
/** Slabs kept for the next append. */
const MAX_KEPT_SLABS = 8;
const INT64_BYTES = 8;
/** Longest varint. */
const VARINT_BYTES = 8;
const RECORD_LENGTH_BYTES = 4;
/** Mutations of a large change that are encoded between two checks of the clock. */
const MUTATIONS_PER_CHECK = 64;

export class AppendEncoder {
  /** Records gathered. */
  count = 0;
  /** Rows that the records change. */
  rows = 0;
  readonly #slabs: Buffer[] = [Buffer.allocUnsafeSlow(SLAB_BYTES)];
  #slabsUsed = 1;
  #slab = this.#slabs[0]!;
  /** Offset of the next byte in the slab. */
  #at = 0;
  /** Offset in the slab at which the present part begins. */
  #from = 0;
  #parts: Uint8Array[] = [];
  #partBytes = 0;
  /** Family of the last cell, as text and encoded. */
  #family = '';
  #encodedFamily: ByteString = '';

  /** Bytes gathered. */
  get sizeBytes(): number {
    return this.#partBytes + this.#at - this.#from;
  }

  /** Adds the record and returns its length in bytes. Adds nothing if that is more than `maxBytes`. */
  add(record: NewRecord, maxBytes = Number.POSITIVE_INFINITY): number {
    const { sizeBytes } = this;
    const slabsUsed = this.#slabsUsed;
    const slab = this.#slab;
    const at = this.#at;
    const from = this.#from;
    const partCount = this.#parts.length;
    const partBytes = this.#partBytes;
    let isAdded = false;
    try {
      this.#reserve(RECORD_LENGTH_BYTES);
      const lengthSlab = this.#slab;
      const lengthAt = this.#at;
      this.#at += RECORD_LENGTH_BYTES;
      this.#record(record);
      const bytes = this.sizeBytes - sizeBytes;
      if (bytes > maxBytes) return bytes;
      assert(bytes > RECORD_LENGTH_BYTES, 'a record has a body');
      lengthSlab.writeUInt32LE(bytes - RECORD_LENGTH_BYTES, lengthAt);
      this.count++;
      if (record.body.kind === 'rows') this.rows += record.body.rows.length;
      isAdded = true;
      return bytes;
    } finally {
      if (!isAdded) {
        this.#slabsUsed = slabsUsed;
        this.#slab = slab;
        this.#at = at;
        this.#from = from;
        this.#parts.length = partCount;
        this.#partBytes = partBytes;
        assert(this.sizeBytes === sizeBytes, 'a record that is not added leaves no bytes');
      }
    }
  }

  /** Adds a record of another append, with its length, as it is. A large one is not copied. */
  addEncoded(record: Uint8Array): void {
    this.count++;
    if (record.length >= LARGE_VALUE_BYTES) return this.#encoded([record]);
    this.#reserve(record.length);
    copyBytes(record, 0, record.length, this.#slab, this.#at);
    this.#at += record.length;
  }

  /** The append's bytes: header and records. They are valid until `reset`. */
  finish(header: AppendHeader): readonly Uint8Array[] {
    assert(header.count === this.count && this.count > 0, 'the header counts the records of the append');
    this.#cut();
    const { previous, count, firstSequence, lowWater, replayFrom } = header;
    assert(replayFrom === undefined || replayFrom > lowWater, 'what was trimmed is not needed by a replay');
    const options = replayFrom === undefined ? [] : [AppendField.replayFrom, varintLength(replayFrom), replayFrom];
    const optionBytes = options.reduce((sum, field) => sum + varintLength(field), 0);
    const fields = [0, previous, count, firstSequence, lowWater, optionBytes, ...options];
    const bytes = Buffer.allocUnsafe(1 + fields.reduce((sum, field) => sum + varintLength(field), 0));
    let at = bytes.writeUInt8(APPEND_VERSION, 0);
    for (const field of fields) at = writeVarint(bytes, at, field);
    assert(at === bytes.length, 'a header has the length that was computed');
    return [bytes, ...this.#parts];
  }

  /** Empties the encoder for the next append. */
  reset(): void {
    assert(this.#slabs.length > 0 && this.#slabsUsed <= this.#slabs.length, "the slabs in use are the encoder's");
    this.count = 0;
    this.rows = 0;
    this.#slabs.length = Math.min(this.#slabs.length, MAX_KEPT_SLABS);
    this.#slabsUsed = 1;
    this.#slab = this.#slabs[0]!;
    this.#at = 0;
    this.#from = 0;
    this.#parts = [];
    this.#partBytes = 0;
  }

  #record(record: NewRecord): void {
    const { body } = record;
    this.#byte(body.kind === 'rows' ? RecordKind.rows : RecordKind.dropRows);
    this.#text(utf8(record.tableId));
    this.#varint(record.epoch);
    this.#int64(record.commitMicros);
    this.#varint(record.origin);
    this.#fields(record.token);
    if (body.kind === 'rows') {
      if (record.encodedRows) return this.#encoded(record.encodedRows);
      this.#varint(body.rows.length);
      for (const row of body.rows) this.#row(row);
    } else {
      this.#rowRange(body.range);
    }
  }

  #fields(token: LogRecord['token']): void {
    if (!token) return this.#byte(0);
    const size = varintLength(RecordField.token) + varintLength(token.length) + token.length;
    this.#varint(size);
    this.#varint(RecordField.token);
    this.#bytes(token);
  }

  #encoded(parts: readonly Uint8Array[]): void {
    assert(parts.length > 0, 'what was encoded beforehand has bytes');
    this.#cut();
    for (const part of parts) {
      this.#parts.push(part);
      this.#partBytes += part.length;
    }
  }

  /** Only for `encodeRows`, with an encoder of its own. */
  async rowsInSlices(rows: readonly RowMutations[], pacer: Pacer): Promise<readonly Uint8Array[]> {
    assert(this.count === 0 && this.sizeBytes === 0, 'rows are encoded beforehand by an encoder of their own');
    this.#varint(rows.length);
    for (const { row, mutations } of rows) {
      this.#text(row);
      this.#varint(mutations.length);
      for (let from = 0; from < mutations.length; from += MUTATIONS_PER_CHECK) {
        this.#mutations(sliceMutations(mutations, from, from + MUTATIONS_PER_CHECK));
        if (pacer.due(MUTATIONS_PER_CHECK)) await pacer.pause();
      }
    }
    this.#cut();
    return this.#parts;
  }

  #row(change: RowMutations): void {
    this.#text(change.row);
    const { mutations } = change;
    this.#varint(mutations.length);
    this.#mutations(mutations);
  }

  #mutations(mutations: Mutations): void {
    if (isCellRun(mutations)) this.#cells(mutations);
    else for (const mutation of mutations) this.#mutation(mutation);
  }

  #cells(run: CellRun): void {
    for (let at = run.from; at < run.from + run.length; at++) {
      const { family, qualifier } = columnAt(run, at);
      const timestamp = timestampAt(run, at);
      assert(timestamp !== undefined, 'a logged cell carries its final timestamp');
      this.#cell(MutationKind.setCell, family, qualifier, timestamp);
      const { batch } = run;
      this.#bytes(batch.bytes, batch.starts[at]!, batch.ends[at]!);
    }
  }

  #rowRange(range: RowRange): void {
    this.#text(range.start);
    this.#byte(range.end === undefined ? 0 : 1);
    if (range.end !== undefined) this.#text(range.end);
  }

  #mutation(mutation: Mutation): void {
    switch (mutation.kind) {
      case 'setCell':
        assert(mutation.timestamp !== undefined, 'a logged mutation carries its final timestamp');
        this.#cell(MutationKind.setCell, mutation.family, mutation.qualifier, mutation.timestamp);
        return this.#bytes(mutation.value);
      case 'addToCell': {
        const { input } = mutation;
        const isBytes = typeof input === 'object';
        this.#cell(
          isBytes ? MutationKind.addBytesToCell : MutationKind.addIntegerToCell,
          mutation.family,
          mutation.qualifier,
          mutation.timestamp,
        );
        return isBytes ? this.#bytes(input) : this.#int64(input);
      }
      case 'mergeToCell':
        this.#cell(MutationKind.mergeToCell, mutation.family, mutation.qualifier, mutation.timestamp);
        return this.#bytes(mergedState(mutation));
      case 'deleteFromColumn': {
        const { start, end } = mutation.range ?? {};
        this.#byte(MutationKind.deleteFromColumn);
        this.#text(utf8(mutation.family));
        this.#text(mutation.qualifier);
        this.#byte((start === undefined ? 0 : RangeFlag.start) | (end === undefined ? 0 : RangeFlag.end));
        if (start !== undefined) this.#int64(start);
        if (end !== undefined) this.#int64(end);
        return;
      }
      case 'deleteFromFamily':
        this.#byte(MutationKind.deleteFromFamily);
        return this.#text(utf8(mutation.family));
      case 'deleteFromRow':
        return this.#byte(MutationKind.deleteFromRow);
    }
  }

  #cell(kind: number, family: string, qualifier: ByteString, timestamp: Int64): void {
    // cells of a family mostly come together
    if (family !== this.#family) {
      this.#encodedFamily = utf8(family);
      this.#family = family;
    }
    this.#byte(kind);
    this.#text(this.#encodedFamily);
    this.#text(qualifier);
    this.#int64(timestamp);
  }

  #byte(value: number): void {
    this.#reserve(1);
    this.#slab[this.#at++] = value;
  }

  #varint(value: number): void {
    assert(value >= 0 && Number.isSafeInteger(value), 'a varint is a safe integer, not negative');
    this.#reserve(VARINT_BYTES);
    this.#at = writeVarint(this.#slab, this.#at, value);
  }

  #int64(value: Int64): void {
    this.#reserve(INT64_BYTES);
    writeInt64BE(this.#slab, this.#at, value);
    this.#at += INT64_BYTES;
  }

  #text(text: ByteString): void {
    const { length } = text;
    this.#reserve(VARINT_BYTES + length);
    const slab = this.#slab;
    let at = writeVarint(slab, this.#at, length);
    if (length <= SHORT_TEXT) {
      for (let i = 0; i < length; i++) slab[at++] = text.charCodeAt(i);
    } else {
      at += slab.latin1Write(text, at, length);
    }
    this.#at = at;
  }

  /** Bytes [from, to) of `bytes`. */
  #bytes(bytes: Uint8Array, from = 0, to = bytes.length): void {
    const length = to - from;
    if (length >= LARGE_VALUE_BYTES) return this.#largeBytes(length === bytes.length ? bytes : viewOf(bytes, from, to));
    this.#reserve(VARINT_BYTES + length);
    const at = writeVarint(this.#slab, this.#at, length);
    copyBytes(bytes, from, to, this.#slab, at);
    this.#at = at + length;
  }

  #largeBytes(bytes: Uint8Array): void {
    this.#varint(bytes.length);
    this.#cut();
    this.#parts.push(bytes);
    this.#partBytes += bytes.length;
  }

  /** Makes space for `length` more bytes in the slab. */
  #reserve(length: number): void {
    if (this.#at + length > this.#slab.length) this.#nextSlab(length);
  }

  #nextSlab(length: number): void {
    this.#cut();
    let next = this.#slabs[this.#slabsUsed];
    if (!next || next.length < length) {
      next = Buffer.allocUnsafeSlow(Math.max(SLAB_BYTES, length));
      this.#slabs[this.#slabsUsed] = next;
    }
    this.#slabsUsed++;
    this.#slab = next;
    this.#at = 0;
    this.#from = 0;
  }

  /** Ends the present part of the slab. */
  #cut(): void {
    if (this.#at === this.#from) return;
    this.#parts.push(this.#slab.subarray(this.#from, this.#at));
    this.#partBytes += this.#at - this.#from;
    this.#from = this.#at;
  }
}

/**
 * Encodes the rows of a record that is too large for one slice of the event loop, for NewRecord.encodedRows. Large
 * values are not copied.
 */
export function encodeRows(rows: readonly RowMutations[], pacer: Pacer): Promise<readonly Uint8Array[]> {
  return new AppendEncoder().rowsInSlices(rows, pacer);
}
