/** Ids of new tables, and of backups: none is given twice. */
import { assert, BigtableError, Code } from '../base/index.ts';
import type { LockHandle, LockService } from '../env/index.ts';
import {
  decodeNextTableId,
  encodeNextTableId,
  FIRST_TABLE_ID,
  LAST_TABLE_ID,
  NEXT_TABLE_ID_PATH,
} from '../metadata/index.ts';

export class TableIds {
  readonly #lockService: LockService;
  readonly #lock: LockHandle;
  #last: Promise<unknown> = Promise.resolve();

  /** `lock`: the master's. */
  constructor(lockService: LockService, lock: LockHandle) {
    this.#lockService = lockService;
    this.#lock = lock;
  }

  next(): Promise<string> {
    const drawn = this.#last.then(async () => {
      const file = await this.#lockService.read(NEXT_TABLE_ID_PATH);
      const next = file ? decodeNextTableId(file.contents) : FIRST_TABLE_ID;
      if (next > LAST_TABLE_ID) throw new BigtableError(Code.RESOURCE_EXHAUSTED, 'all table ids are used');
      await this.#lockService.write(NEXT_TABLE_ID_PATH, encodeNextTableId(next + 1), {
        version: file?.version ?? 0,
        lock: this.#lock,
      });
      const id = next.toString(16).padStart(8, '0');
      assert(id.length === 8, 'a table id has eight digits');
      return id;
    });
    this.#last = drawn.catch(() => {});
    return drawn;
  }
}
