/**
 * Balances the connections of threads that accept from one listening socket: the kernel wakes all of them, and the
 * first one takes the connection, so a thread listens only while no other one has fewer connections.
 *
 * The numbers of connections are in memory that the threads share; a thread that changes its own notifies the others.
 *
 * Invariant: of the threads that take connections, the one with fewest listens.
 */
import { BroadcastChannel } from 'node:worker_threads';
import { assert } from '../../base/index.ts';

/** The channel of the notices; one process has one shared listener. */
const CHANNEL = 'edubba-connections';
/** The number of a thread that takes no connections. */
const NONE = -1;
/** Above this share of the fewest connections a thread does not listen: moving it for every connection costs more. */
const SLACK_SHARE = 1 / 8;

/** One number for each thread. */
export function connectionCounts(threads: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(threads * Int32Array.BYTES_PER_ELEMENT)).fill(NONE);
}

/** Says that the thread of that index has ended. */
export function endAcceptTurns(counts: Int32Array, index: number): void {
  Atomics.store(counts, index, NONE);
  const channel = new BroadcastChannel(CHANNEL);
  channel.postMessage(index);
  channel.close();
}

export interface AcceptTurnsOptions {
  readonly counts: Int32Array;
  readonly index: number;
  /** Begins or ends listening; called only on changes. The thread listens at first. */
  readonly setListening: (isOn: boolean) => void;
}

export class AcceptTurns {
  readonly #options: AcceptTurnsOptions;
  readonly #channel = new BroadcastChannel(CHANNEL);
  #isListening = true;

  constructor(options: AcceptTurnsOptions) {
    assert(options.index < options.counts.length, 'each thread has its number of connections');
    this.#options = options;
    this.#channel.onmessage = () => this.#decide();
    // it must not keep the thread alive
    this.#channel.unref();
    this.changed(0);
  }

  /** Sets the thread's number of connections. */
  changed(connections: number): void {
    const { counts, index } = this.#options;
    Atomics.store(counts, index, connections);
    this.#decide();
    this.#channel.postMessage(index);
  }

  /** The thread takes no more connections. */
  close(): void {
    const { counts, index } = this.#options;
    Atomics.store(counts, index, NONE);
    this.#channel.postMessage(index);
    this.#channel.close();
  }

  #decide(): void {
    const { counts, index, setListening } = this.#options;
    const own = Atomics.load(counts, index);
    let fewest = own;
    for (let i = 0; i < counts.length; i++) {
      const count = Atomics.load(counts, i);
      if (count !== NONE && count < fewest) fewest = count;
    }
    const isListening = own <= fewest + Math.floor(fewest * SLACK_SHARE);
    if (isListening === this.#isListening) return;
    this.#isListening = isListening;
    setListening(isListening);
  }
}
