/**
 * State that the requests of one API share while they are decoded: the generated codec, recent filters, and the last
 * table name.
 *
 * The usual requests and answers are read and written by hand. The generated codec serves the rest. Building its
 * descriptors takes as long as opening a small database, so it is loaded after the server listens, or for the first
 * request that needs it.
 */
import { assert, invalidArgument } from '../../base/index.ts';
import type { Clock } from '../../env/index.ts';
import type { RowFilter } from '../../filter/index.ts';
import { LIMITS } from '../../model/index.ts';
import type { WireReader } from '../../protobuf/index.ts';
import type { GeneratedCodec } from './generated-codec.ts';
import { loadGenerated } from './generated-in-steps.ts';

const MAX_FILTERS = 64;
/** Decoding a larger filter costs little compared with running it. */
const MAX_KEPT_FILTER_BYTES = 512;

export class RequestDecoder {
  #generated: GeneratedCodec | undefined;
  readonly #filters = new Map<string, RowFilter>();
  readonly #clock: Clock;
  #table = '';

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Undefined until `load` has resolved once. */
  get generated(): GeneratedCodec | undefined {
    return this.#generated;
  }

  async load(): Promise<GeneratedCodec> {
    if (this.#generated !== undefined) return this.#generated;
    await loadGenerated('data', this.#clock);
    this.#generated = (await import('./generated-codec.ts')).GENERATED_CODEC;
    return this.#generated;
  }

  /**
   * The table name in the field at which the reader is. Calls name the same table again and again: equal bytes become
   * the same string, which needs no new hash where the table is looked up.
   */
  tableName(reader: WireReader): string {
    this.#table = reader.textLike(this.#table);
    return this.#table;
  }

  /**
   * The filter in a request's bytes, or undefined where they are empty. The generated codec must be loaded. Clients
   * send the same few filters again and again: equal bytes become the same object, which finds its compiled form by
   * identity.
   */
  filter(bytes: Buffer): RowFilter | undefined {
    checkFilterSize(bytes.length);
    const key = bytes.length <= MAX_KEPT_FILTER_BYTES ? bytes.latin1Slice() : undefined;
    const known = key !== undefined ? this.#filters.get(key) : undefined;
    if (known !== undefined) return known;
    assert(this.#generated !== undefined, 'a filter is decoded when the generated codec is loaded');
    const filter = this.#generated.filter(bytes);
    if (key !== undefined && filter !== undefined) this.#keep(key, filter);
    return filter;
  }

  #keep(key: string, filter: RowFilter): void {
    if (this.#filters.size >= MAX_FILTERS) this.#filters.delete(this.#filters.keys().next().value!);
    this.#filters.set(key, filter);
  }
}

/**
 * The bytes of a filter whose field appears again: protobuf merges the parts of a message field, and concatenated bytes
 * decode to the merged message.
 */
export function withFilterPart(before: Buffer | undefined, part: Buffer): Buffer {
  if (before === undefined || before.length === 0) return part;
  if (part.length === 0) return before;
  checkFilterSize(before.length + part.length);
  return Buffer.concat([before, part]);
}

function checkFilterSize(sizeBytes: number): void {
  const maxBytes = LIMITS.default.filterBytes;
  if (sizeBytes > maxBytes)
    throw invalidArgument(`the filter has ${sizeBytes} bytes serialized; the limit is ${maxBytes}`, {
      field: 'filter',
    });
}
