/**
 * Keeps leases alive from a thread of its own (lease-keeper-thread.ts), so that a stall of the thread that uses them
 * does not end them: the owner's side.
 *
 * Invariant: the slot of a lease is reused only after the thread has said that it no longer writes it.
 */
import type { Worker } from 'node:worker_threads';
import { assert, BigtableError, Code } from '../../base/index.ts';
import type { Logger } from '../../env/index.ts';
import { mustThreadModule } from '../threads/packages.ts';
import { startThread } from '../threads/threads.ts';
import type { EtcdAccess } from './etcd-client.ts';
import { leaseMemory, MAX_LEASES, SharedLeases } from './shared-leases.ts';

/** What the thread is started with. */
export interface KeeperData {
  readonly access: EtcdAccess;
  readonly memory: SharedArrayBuffer;
}

export interface KeeperMessage {
  readonly kind: 'keep' | 'drop';
  readonly slot: number;
  /** With 'keep'. */
  readonly lease?: bigint;
}

/** The thread writes the slot no more: the lease was dropped, or has ended. */
export interface KeeperAnswer {
  readonly dropped: number;
}

export class LeaseKeeper {
  readonly leases: SharedLeases;
  readonly #thread: Worker;
  readonly #free = Array.from({ length: MAX_LEASES }, (_, i) => MAX_LEASES - 1 - i);
  /** Slots that the thread will write no more, of leases that their owner has not dropped yet. */
  readonly #ended = new Set<number>();
  readonly #owned = new Set<number>();
  #failure: BigtableError | undefined;

  constructor(access: EtcdAccess, logger: Logger) {
    const memory = leaseMemory();
    this.leases = new SharedLeases(memory);
    const workerData: KeeperData = { access, memory };
    this.#thread = startThread(mustThreadModule('./lease-keeper-thread.ts', import.meta.url), { workerData });
    this.#thread.on('message', ({ dropped }: KeeperAnswer) => {
      if (this.#owned.has(dropped)) this.#ended.add(dropped);
      else this.#free.push(dropped);
    });
    this.#thread.on('error', (error) => {
      logger.error('the thread that keeps sessions of etcd alive has failed', { error: error.message });
      this.#fail(error.message);
    });
    this.#thread.on('exit', () => this.#fail('it has ended'));
    // after the listeners: one for messages keeps the process alive again
    this.#thread.unref();
  }

  /**
   * A slot whose lease does not hold. RESOURCE_EXHAUSTED where there are too many, INTERNAL where the thread has died.
   */
  reserve(): number {
    if (this.#failure) throw this.#failure;
    const slot = this.#free.pop();
    if (slot === undefined)
      throw new BigtableError(Code.RESOURCE_EXHAUSTED, `a process has at most ${MAX_LEASES} sessions in etcd`);
    this.leases.ended(slot);
    this.#owned.add(slot);
    return slot;
  }

  /** Keeps the lease alive until it is dropped, or ends. */
  keep(slot: number, lease: bigint): void {
    this.#send({ kind: 'keep', slot, lease });
  }

  /** The lease of a slot that is kept is given up. */
  drop(slot: number): void {
    assert(this.#owned.delete(slot), 'a slot is dropped once');
    if (this.#ended.delete(slot)) this.#free.push(slot);
    else this.#send({ kind: 'drop', slot });
  }

  /** A slot for which `keep` was not called is free again. */
  release(slot: number): void {
    assert(this.#owned.delete(slot), 'a slot that is owned is released');
    this.#free.push(slot);
  }

  async close(): Promise<void> {
    this.#fail('it was closed');
    await this.#thread.terminate();
  }

  #send(message: KeeperMessage): void {
    this.#thread.postMessage(message);
  }

  #fail(why: string): void {
    this.#failure ??= new BigtableError(Code.INTERNAL, `no session of etcd is kept alive: ${why}`);
  }
}
