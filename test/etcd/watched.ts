/** What a watch has reported, for tests that wait for it. */
import type { LockEvent, LockService } from '../../src/env/index.ts';

export class Watched {
  readonly events: LockEvent[] = [];
  readonly stop: () => void;
  #wake: () => void = () => {};

  constructor(service: LockService, prefix: string) {
    this.stop = service.watch(prefix, (event) => {
      this.events.push(event);
      this.#wake();
    });
  }

  /** Resolves with the first event for which it holds, from number `from` on. */
  async until(isWanted: (event: LockEvent) => boolean, from = 0): Promise<LockEvent> {
    for (;;) {
      const found = this.events.slice(from).find(isWanted);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  kind(kind: LockEvent['kind'], from = 0): Promise<LockEvent> {
    return this.until((event) => event.kind === kind, from);
  }

  /** The versions of a file, in the order in which they came. */
  versionsOf(path: string): number[] {
    return this.events.flatMap((event) => (event.kind === 'changed' && event.path === path ? [event.version] : []));
  }
}
