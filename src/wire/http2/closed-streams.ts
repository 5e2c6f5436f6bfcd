/**
 * The streams that ended lately, and how: frames for them may still be on their way and are then no fault of the
 * peer's. Consulted only when a frame names a stream that is not open; older ones are evicted.
 */
const KEPT = 256;

export class ClosedStreams {
  /** Stream ids; negative where we reset the stream. */
  readonly #ids: number[] = [];
  #next = 0;

  add(streamId: number, resetByUs: boolean): void {
    this.#ids[this.#next] = resetByUs ? -streamId : streamId;
    this.#next = (this.#next + 1) % KEPT;
  }

  has(streamId: number): boolean {
    return this.#ids.includes(streamId) || this.wasResetByUs(streamId);
  }

  wasResetByUs(streamId: number): boolean {
    return this.#ids.includes(-streamId);
  }
}
