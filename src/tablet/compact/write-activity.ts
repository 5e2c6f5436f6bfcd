/** Observes when a tablet last took writes. It costs writes nothing: it compares when it is asked. */
import { isAfter, type RedoPoint } from '../../commitlog/index.ts';

/** A tablet without a write for this long is quiet. */
const QUIET_MS = 1000;

export class WriteActivity {
  #seen: RedoPoint = { epoch: 0, sequence: 0 };
  #seenMs = 0;

  /** True if no record was applied since a call at least 1 s ago. `applied`: the last one. `nowMs`: monotonic. */
  isQuiet(applied: RedoPoint, nowMs: number): boolean {
    if (isAfter(applied, this.#seen)) {
      this.#seen = applied;
      this.#seenMs = nowMs;
    }
    return nowMs - this.#seenMs >= QUIET_MS;
  }
}
