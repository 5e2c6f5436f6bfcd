/**
 * Refuses calls that are meant for another incarnation, and calls of a master after one of a later master.
 *
 * Invariant: the highest epoch seen only grows. A server that is given a tablet of METADATA has seen the epoch of the
 * master that gave it.
 */
import { checkAddressed, deposed, type FromMaster } from '../protocol/index.ts';

export class MasterFence {
  readonly #serverName: string;
  readonly #onMaster: () => void;
  #highestEpoch = 0;

  /** `onMaster` is called with each call of a master that is not refused. */
  constructor(serverName: string, onMaster: () => void) {
    this.#serverName = serverName;
    this.#onMaster = onMaster;
  }

  check(message: FromMaster): void {
    checkAddressed(message, this.#serverName);
    const { masterEpoch } = message;
    if (masterEpoch === undefined) return;
    if (masterEpoch < this.#highestEpoch) throw deposed(masterEpoch, this.#highestEpoch);
    this.#highestEpoch = masterEpoch;
    this.#onMaster();
  }
}
