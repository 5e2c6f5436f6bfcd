/** Fixtures for tests of connections: a socket in memory, and a clock whose turns of the event loop a test begins. */
import { Duplex } from 'node:stream';
import { ManualClock } from '../../env/index.ts';

/** A socket in memory, whose other end a test holds. */
export class Pipe extends Duplex {
  readonly written: Buffer[] = [];
  /** Set: written bytes are never taken. */
  stuck = false;
  hasEnded = false;

  constructor() {
    super({ allowHalfOpen: true });
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.written.push(chunk);
    if (!this.stuck) done();
  }

  override _final(done: () => void): void {
    this.hasEnded = true;
    done();
  }
}

/** `yield` resolves when the test calls `turn`. */
export class TurnClock extends ManualClock {
  #waiting: (() => void)[] = [];

  override yield(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Begins the next turn, and waits for what follows from it. */
  async turn(): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
    await streamsFlushed();
  }
}

/** Resolves when streams have handed on what was pushed into them. */
export function streamsFlushed(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
