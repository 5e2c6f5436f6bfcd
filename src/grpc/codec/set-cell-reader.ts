/**
 * Reads a Mutation that is one SetCell and perhaps an origin of its timestamp, by far the most frequent, as positions
 * in the request's bytes. One reader serves all mutations of a request and makes no objects.
 */
import type { Int64 } from '../../base/index.ts';
import { WireReader } from '../../protobuf/index.ts';
import { isUntruncated, SERVER_TIME } from '../convert/set-cell-timestamp.ts';

/** Positions of the parts of a SetCell. */
export interface SetCellFields {
  readonly familyStart: number;
  readonly familyEnd: number;
  readonly qualifierStart: number;
  readonly qualifierEnd: number;
  readonly valueStart: number;
  readonly valueEnd: number;
  /** Undefined: the server's time. */
  readonly timestamp: Int64 | undefined;
}

export class SetCellReader implements SetCellFields {
  familyStart = 0;
  familyEnd = 0;
  qualifierStart = 0;
  qualifierEnd = 0;
  valueStart = 0;
  valueEnd = 0;
  timestamp: Int64 | undefined = 0;
  /** True when the client library made the timestamp up and it is not a whole millisecond. */
  isUntruncated = false;
  readonly #outer: WireReader;
  readonly #inner: WireReader;

  constructor(bytes: Buffer) {
    this.#outer = new WireReader(bytes);
    this.#inner = new WireReader(bytes);
  }

  /** The mutation at [start, end). False where it is anything else. */
  read(start: number, end: number): boolean {
    const outer = this.#outer;
    outer.begin(start, end);
    if (!outer.next()) return false;
    const kind: number = outer.field;
    if (kind !== 1) return false;
    outer.span();
    this.#inner.begin(outer.spanStart, outer.spanEnd);
    let origin = 0;
    while (outer.next()) {
      const field: number = outer.field;
      if (field !== 7) return false;
      origin = outer.int32();
    }
    const timestamp = this.#cell();
    this.timestamp = timestamp === SERVER_TIME ? undefined : timestamp;
    this.isUntruncated = isUntruncated(origin, timestamp);
    return true;
  }

  /** Reads its parts; returns the timestamp as it was sent. */
  #cell(): Int64 {
    const inner = this.#inner;
    this.familyStart = this.familyEnd = this.qualifierStart = this.qualifierEnd = this.valueStart = this.valueEnd = 0;
    let timestamp: Int64 = 0;
    while (inner.next()) {
      switch (inner.field) {
        case 1:
          inner.span();
          this.familyStart = inner.spanStart;
          this.familyEnd = inner.spanEnd;
          break;
        case 2:
          inner.span();
          this.qualifierStart = inner.spanStart;
          this.qualifierEnd = inner.spanEnd;
          break;
        case 3:
          timestamp = inner.int64();
          break;
        case 4:
          inner.span();
          this.valueStart = inner.spanStart;
          this.valueEnd = inner.spanEnd;
          break;
        default:
          inner.skip();
      }
    }
    return timestamp;
  }
}
