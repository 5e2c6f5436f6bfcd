/**
 * A tablet server and the tablets that it has, as far as the master knows: from its last answer, and from what the
 * master gave to it and took from it since.
 *
 * Invariant: an answer that was on its way does not undo what the master has learnt since it sent the request; and a
 * tablet that is being given counts as the server's until the outcome is known, so that it is not lost if the server
 * dies.
 */
import { assert } from '../base/index.ts';
import type { MetadataKey } from '../metadata/index.ts';
import type { TabletRef } from '../protocol/index.ts';

/** The epoch of a tablet that is being given. */
const GIVEN = 0;

export class LiveServer {
  readonly name: string;
  readonly address: string;
  readonly #tablets = new Map<MetadataKey, number>();
  /** Tablets of which the master has learnt something since it requested the answer that is on its way. */
  #changed: Set<MetadataKey> | undefined;
  /** Number of tablets that are being given. */
  #given = 0;

  constructor({ name, address }: { readonly name: string; readonly address: string }) {
    this.name = name;
    this.address = address;
  }

  /** By key, their epochs; 0 for those that are being given. */
  get tablets(): ReadonlyMap<MetadataKey, number> {
    return this.#tablets;
  }

  /** The number of tablets that are being given. */
  get given(): number {
    return this.#given;
  }

  /** The tablet is about to be given to it. */
  give(key: MetadataKey): void {
    this.#set(key, GIVEN);
  }

  /** It serves the tablet. */
  serves({ key, epoch }: TabletRef): void {
    this.#set(key, epoch);
  }

  /** It has the tablet no more, or has not got it. */
  drop(key: MetadataKey): void {
    this.#set(key, undefined);
  }

  /** Its tablets are requested: one request at a time. */
  requested(): void {
    assert(this.#changed === undefined, 'the tablets of a server are requested once at a time');
    this.#changed = new Set();
  }

  /** The request has failed. */
  notAnswered(): void {
    this.#changed = undefined;
  }

  answered(tablets: readonly TabletRef[]): void {
    const changed = this.#changed;
    assert(changed !== undefined, 'an answer was requested');
    this.#changed = undefined;
    const left = new Set(this.#tablets.keys());
    for (const { key, epoch } of tablets) {
      left.delete(key);
      if (!changed.has(key)) this.#set(key, epoch);
    }
    for (const key of left) if (!changed.has(key) && this.#tablets.get(key) !== GIVEN) this.#set(key, undefined);
  }

  #set(key: MetadataKey, epoch: number | undefined): void {
    this.#changed?.add(key);
    if (this.#tablets.get(key) === GIVEN) this.#given--;
    if (epoch === GIVEN) this.#given++;
    if (epoch === undefined) this.#tablets.delete(key);
    else this.#tablets.set(key, epoch);
    assert(this.#given >= 0, 'no more tablets are got than were given');
  }
}
