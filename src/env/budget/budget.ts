/**
 * A budget of bytes shared by all requests of a process: requests in flight, and answers not yet sent. A caller
 * reserves bytes before it holds them; requests that find no space wait their turn. Small requests have a part of their
 * own and never wait for large ones (budget-parts.ts); among waiting calls, shares are even (turn-queue.ts).
 *
 * Invariants: the parts' (budget-parts.ts). Only a request that is not admitted waits, and it holds only its received
 * bytes, in a part for which no call waits. So calls cannot wait for one another in a circle.
 */
import { BigtableError, Code, offAbort, onAbort } from '../../base/index.ts';
import { BudgetParts, Part } from './budget-parts.ts';
import { type Owner, type Turn, TurnQueue } from './turn-queue.ts';

interface Waiter extends Turn {
  readonly grant: () => void;
}

/** Frees bytes by ending calls that are too slow. */
export interface Relief {
  /** Called when a call finds no space. Ends calls until `isEnough` returns true, or no call is left to end. */
  relieve(isEnough: () => boolean): void;
}

export class ByteBudget {
  readonly #parts: BudgetParts;
  readonly #small: TurnQueue<Waiter>;
  readonly #common: TurnQueue<Waiter>;
  readonly #reliefs = new Set<Relief>();
  #isRelieving = false;

  constructor(limitBytes: number) {
    this.#parts = new BudgetParts(limitBytes);
    this.#small = new TurnQueue(this.#parts.sizeOf(Part.small));
    this.#common = new TurnQueue(this.#parts.sizeOf(Part.common));
  }

  get limitBytes(): number {
    return this.#parts.limitBytes;
  }

  get usedBytes(): number {
    return this.#parts.usedBytes;
  }

  /** Bytes used by one part. */
  usedOf(part: Part): number {
    return this.#parts.usedOf(part);
  }

  /** Bytes used by each part, by its name. */
  usedByPart(): Readonly<Record<string, number>> {
    return Object.fromEntries(Object.entries(Part).map(([name, part]) => [name, this.usedOf(part)]));
  }

  get waiting(): number {
    return this.#small.length + this.#common.length;
  }

  /** The largest request that counts as small. */
  get smallBytes(): number {
    return this.#parts.smallBytes;
  }

  /** The part of a request of that size. */
  partOf(bytes: number): Part {
    return this.#parts.partOf(bytes);
  }

  reservation(owner?: Owner): Reservation {
    return new Reservation(this, owner);
  }

  addRelief(relief: Relief): void {
    this.#reliefs.add(relief);
  }

  removeRelief(relief: Relief): void {
    this.#reliefs.delete(relief);
  }

  /**
   * Takes the bytes of that part immediately, or returns false. `ownBytes`: bytes of the part that the caller holds.
   * Ends no call.
   */
  tryTake(part: Part, bytes: number, ownBytes = 0): boolean {
    const awaited = this.#common.length > 0;
    if ((part === Part.common && awaited) || !this.#parts.fits(part, bytes, awaited, ownBytes)) return false;
    this.#parts.take(part, bytes);
    return true;
  }

  /** The same for a request that is not admitted: false while others wait. */
  tryAdmit(part: Part, bytes: number): boolean {
    return (part !== Part.small || this.#small.length === 0) && this.tryTake(part, bytes);
  }

  /** Ends calls that are too slow, until the part has space for the bytes. */
  relieve(part: Part, bytes: number, ownBytes: number): void {
    this.#relieve(() => this.#parts.fits(part, bytes, this.#common.length > 0, ownBytes));
  }

  /** Takes the bytes even where the budget has no space for them. */
  force(part: Part, bytes: number): void {
    this.#parts.take(part, bytes);
  }

  /** Takes the bytes of a request for the owner, waiting for them; CANCELLED when the signal aborts first. */
  take(part: Part, bytes: number, owner?: Owner, signal?: AbortSignal): Promise<void> {
    const queue = part === Part.small ? this.#small : this.#common;
    if (this.tryAdmit(part, bytes)) {
      owner?.hold(bytes);
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        if (!queue.remove(waiter, false)) return;
        reject(new BigtableError(Code.CANCELLED, 'the caller cancelled the call while it waited for memory'));
        this.#wake();
      };
      const grant = (): void => {
        offAbort(signal, abort);
        resolve();
      };
      const waiter: Waiter = { bytes, owner, grant };
      if (signal?.aborted) return reject(new BigtableError(Code.CANCELLED, 'the caller cancelled the call'));
      onAbort(signal, abort);
      queue.add(waiter);
      this.#relieve(() => this.waiting === 0);
    });
  }

  release(part: Part, bytes: number): void {
    this.#parts.release(part, bytes);
    if (this.waiting > 0) this.#wake();
  }

  #relieve(isEnough: () => boolean): void {
    if (this.#isRelieving) return;
    this.#isRelieving = true;
    try {
      for (const relief of this.#reliefs) if (!isEnough()) relief.relieve(isEnough);
    } finally {
      this.#isRelieving = false;
    }
  }

  /** Grants the waiting requests that fit now. Small ones first: they have a part of their own. */
  #wake(): void {
    this.#grantFrom(this.#small, Part.small);
    if (this.#common.length === 0) return;
    this.#grantFrom(this.#common, Part.common);
    // no call waits for the common part any more: small requests may borrow from it
    if (this.#common.length === 0) this.#grantFrom(this.#small, Part.small);
  }

  #grantFrom(queue: TurnQueue<Waiter>, part: Part): void {
    for (;;) {
      const next = queue.next();
      if (next === undefined || !this.#parts.fits(part, next.bytes, this.#common.length > 0)) return;
      this.#parts.take(part, next.bytes);
      queue.remove(next, true);
      next.owner?.hold(next.bytes);
      next.grant();
    }
  }
}

/**
 * The bytes of a budget that one call holds. `release` returns all of them and may be called again.
 *
 * Waiting while holding leads to deadlocks: `grow` waits, so it is for admission, while the call holds only its
 * received bytes. A call under way uses `tryGrow` and `tryHoldAnswer`; when refused it waits until its own answers are
 * sent, or fails.
 */
export class Reservation {
  readonly owner: Owner | undefined;
  readonly #budget: ByteBudget;
  #smallBytes = 0;
  #arrivingBytes = 0;
  #unreadBytes = 0;
  #commonBytes = 0;
  /** The part of all reserved bytes that answers may take. */
  #asideBytes = 0;
  #released = false;

  constructor(budget: ByteBudget, owner?: Owner) {
    this.#budget = budget;
    this.owner = owner;
  }

  get heldBytes(): number {
    return this.#smallBytes + this.#arrivingBytes + this.#unreadBytes + this.#commonBytes;
  }

  get arrivingBytes(): number {
    return this.#arrivingBytes;
  }

  /** The largest request that counts as small. */
  get smallBytes(): number {
    return this.#budget.smallBytes;
  }

  /** Takes more immediately where the budget has it, else returns false. May end calls that are too slow. */
  tryGrow(bytes: number): boolean {
    if (this.#released) return false;
    const part = this.#budget.partOf(bytes);
    if (!this.#tryTake(part, bytes, part === Part.small ? this.#smallBytes : this.#commonBytes)) return false;
    this.#add(part, bytes);
    this.owner?.hold(bytes);
    return true;
  }

  /** Takes the bytes of a request that is admitted, after waiting its turn. They include the bytes received before. */
  async grow(bytes: number, signal?: AbortSignal): Promise<void> {
    const budget = this.#budget;
    const part = budget.partOf(bytes);
    await budget.take(part, bytes, this.owner, signal);
    if (this.#released) {
      this.owner?.hold(-bytes);
      budget.release(part, bytes);
    } else this.#add(part, bytes);
  }

  /** Takes the bytes of a request immediately where no other request waits for them; else returns false. */
  tryAdmit(bytes: number): boolean {
    const part = this.#budget.partOf(bytes);
    if (this.#released || !this.#budget.tryAdmit(part, bytes)) return false;
    this.#add(part, bytes);
    this.owner?.hold(bytes);
    return true;
  }

  /** Holds bytes of a request that is not admitted; false where the budget has no space for them. */
  tryArrive(bytes: number): boolean {
    if (this.#released || !this.#tryTake(Part.arriving, bytes, this.#arrivingBytes)) return false;
    this.#arrivingBytes += bytes;
    this.owner?.hold(bytes);
    return true;
  }

  /** Returns `bytes` of those that `tryArrive` took: they were admitted, or handed on. Default: all. */
  arrived(bytes = this.#arrivingBytes): void {
    const given = Math.min(bytes, this.#arrivingBytes);
    if (given === 0) return;
    this.#arrivingBytes -= given;
    this.owner?.hold(-given);
    this.#budget.release(Part.arriving, given);
  }

  /**
   * Holds bytes of an answer that are not sent; `tight`: little space is left, and the caller should send these before
   * it makes more. `isOneMessage`: together with the bytes held already they become one message, which may exceed the
   * common part where no other call uses that part, up to the size of the budget.
   */
  tryHoldAnswer(bytes: number, isOneMessage = false): 'held' | 'tight' | 'refused' {
    if (this.#released) return 'refused';
    if (bytes <= this.#asideBytes) {
      this.#asideBytes -= bytes;
      return 'held';
    }
    const budget = this.#budget;
    const mayBeAlone = isOneMessage && budget.usedBytes + bytes <= budget.limitBytes;
    if (budget.tryTake(Part.common, bytes, mayBeAlone ? this.#commonBytes : 0)) {
      this.#commonBytes += bytes;
      this.owner?.hold(bytes);
      return 'held';
    }
    if (!this.#tryTake(Part.unread, bytes, this.#unreadBytes)) return 'refused';
    this.#unreadBytes += bytes;
    this.owner?.hold(bytes);
    return 'tight';
  }

  /**
   * Sets held bytes aside for answers, which are then not refused: the request of a call that has written needs them no
   * more.
   */
  setAside(bytes: number): void {
    this.#asideBytes = Math.min(this.#asideBytes + bytes, this.heldBytes);
  }

  /**
   * Holds bytes that are in memory already and cannot be refused: another thread has admitted them and passed them on.
   */
  force(bytes: number): void {
    if (this.#released) return;
    this.#budget.force(Part.common, bytes);
    this.#commonBytes += bytes;
    this.owner?.hold(bytes);
  }

  shrink(bytes: number): void {
    const unread = Math.min(bytes, this.#unreadBytes);
    const common = Math.min(bytes - unread, this.#commonBytes);
    const small = Math.min(bytes - unread - common, this.#smallBytes);
    this.#unreadBytes -= unread;
    this.#commonBytes -= common;
    this.#smallBytes -= small;
    this.owner?.hold(-unread - common - small);
    if (this.#asideBytes > 0) this.#asideBytes = Math.min(this.#asideBytes, this.heldBytes);
    if (small > 0) this.#budget.release(Part.small, small);
    if (unread > 0) this.#budget.release(Part.unread, unread);
    if (common > 0) this.#budget.release(Part.common, common);
  }

  release(): void {
    this.#released = true;
    if (this.#arrivingBytes > 0) this.arrived();
    this.shrink(this.heldBytes);
  }

  #add(part: Part, bytes: number): void {
    if (part === Part.small) this.#smallBytes += bytes;
    else this.#commonBytes += bytes;
  }

  #tryTake(part: Part, bytes: number, ownBytes: number): boolean {
    const budget = this.#budget;
    if (budget.tryTake(part, bytes, ownBytes)) return true;
    budget.relieve(part, bytes, ownBytes);
    // ending others may have ended this call
    return !this.#released && budget.tryTake(part, bytes, ownBytes);
  }
}
