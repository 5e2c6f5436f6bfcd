/** The findings of a check, as plain data. */
import { type BigtableError, CorruptionError } from '../base/index.ts';

/** Damage: bytes, files or rows that are not as they were written. */
export interface Finding {
  /** Path of the file, of the log, or of a file of the lock service; `METADATA` for a row of it. */
  readonly file: string;
  /** Byte in it; undefined if the file is missing, or no byte in it is wrong by itself. */
  readonly offset: number | undefined;
  readonly message: string;
}

export class Findings {
  readonly list: Finding[] = [];
  readonly #known = new Set<string>();

  /** Each finding is reported once, however many ways lead to it. */
  add(file: string, offset: number | undefined, message: string): void {
    const key = `${file}\0${offset ?? ''}\0${offset === undefined ? message : ''}`;
    if (this.#known.has(key)) return;
    this.#known.add(key);
    this.list.push({ file, offset, message });
  }

  /** `file`: where the error itself names none. */
  addError(error: BigtableError, file: string): void {
    if (error instanceof CorruptionError) this.add(error.file, error.offset, error.message);
    else this.add(file, undefined, error.message);
  }
}
