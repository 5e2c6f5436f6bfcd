/**
 * Whether the appends of a log are all there, in order. Each append names the position of the one before it. Appends
 * that are missing must lie below a low-water mark in the log.
 */
import { CorruptionError } from '../base/index.ts';
import type { LogAppend, LogPosition } from '../env/index.ts';
import type { AppendHeader } from './append-format.ts';

/** What the appends of a part of a log say about those before and after it. */
export interface PartOrder {
  readonly appends: number;
  /** Position of the append before the first one, plus 1; 0 if none was before it. */
  readonly firstPrevious: number;
  /** Position of the last append, plus 1. */
  readonly end: number;
  readonly firstSequence: number;
  /** The sequence number after that of the last record. */
  readonly nextSequence: number;
  /** End of the last append that is missing inside the part; 0 if none is. */
  readonly missingBefore: number;
  readonly lowWater: number;
}

/** Where a reading begins: with the log's first append, at a part of it, or where a replay begins. */
export type ReadingBegin = 'log' | 'part' | { readonly replayFrom: LogPosition };

/** Takes the appends of a log, or of a part of it, one by one. CorruptionError where one does not follow the others. */
export class AppendOrder {
  readonly #path: string;
  /** No append is missing from here on. */
  readonly #from: LogPosition | undefined;
  /** Undefined until the first append of a part that does not begin with the log. */
  #previous: number | undefined;
  #appends = 0;
  #firstPrevious = 0;
  #firstSequence = 0;
  #nextSequence = 0;
  #missingBefore = 0;
  #lowWater = 0;

  /** `path` is the log's, for messages. */
  constructor(path: string, begin: ReadingBegin) {
    this.#path = path;
    this.#previous = begin === 'log' ? 0 : undefined;
    this.#from = typeof begin === 'object' ? begin.replayFrom : undefined;
  }

  get part(): PartOrder {
    return {
      appends: this.#appends,
      firstPrevious: this.#firstPrevious,
      end: this.#previous ?? 0,
      firstSequence: this.#firstSequence,
      nextSequence: this.#nextSequence,
      missingBefore: this.#missingBefore,
      lowWater: this.#lowWater,
    };
  }

  next({ position, afterTrim }: LogAppend, header: AppendHeader): void {
    const previous = this.#previous;
    if (previous !== undefined && header.previous !== previous) {
      if (header.previous < previous || (previous > 0 && !afterTrim))
        throw new CorruptionError(this.#path, position, missing(header.previous));
      // the low-water mark of a later append must cover it
      this.#missingBefore = header.previous;
    }
    if (previous === undefined) this.#begins(header.previous);
    this.#follows(position, header.firstSequence);
    if (this.#appends++ === 0) {
      this.#firstPrevious = header.previous;
      this.#firstSequence = header.firstSequence;
    }
    this.#lowWater = Math.max(this.#lowWater, header.lowWater);
    this.#previous = position + 1;
    this.#nextSequence = header.firstSequence + header.count;
  }

  /** Takes a later part of the log as a whole. */
  nextPart(part: PartOrder): void {
    if (part.appends === 0) return;
    if (this.#previous === undefined) this.#begins(part.firstPrevious);
    const previous = this.#previous ?? part.firstPrevious;
    if (part.firstPrevious < previous)
      throw new CorruptionError(this.#path, part.firstPrevious, missing(part.firstPrevious));
    this.#follows(part.firstPrevious, part.firstSequence);
    if (part.firstPrevious > previous) this.#missingBefore = part.firstPrevious;
    this.#missingBefore = Math.max(this.#missingBefore, part.missingBefore);
    this.#appends += part.appends;
    this.#lowWater = Math.max(this.#lowWater, part.lowWater);
    this.#previous = part.end;
    this.#nextSequence = part.nextSequence;
  }

  /** No append follows. */
  finish(): void {
    if (this.#missingBefore > this.#lowWater)
      throw new CorruptionError(
        this.#path,
        this.#missingBefore,
        `${missing(this.#missingBefore)}; only appends below ${this.#lowWater} were trimmed`,
      );
  }

  #begins(firstPrevious: number): void {
    if (this.#from !== undefined && firstPrevious > this.#from)
      throw new CorruptionError(this.#path, firstPrevious, missing(firstPrevious));
  }

  #follows(position: number, firstSequence: number): void {
    if (firstSequence < this.#nextSequence)
      throw new CorruptionError(
        this.#path,
        position,
        `record ${firstSequence} follows record ${this.#nextSequence - 1}`,
      );
  }
}

function missing(previous: number): string {
  return previous === 0 ? 'the log begins a second time' : `the append at ${previous - 1} is missing before it`;
}
