/**
 * The load of each tablet: its size at the last answer of its server, and the rate of the calls about its rows. A
 * tablet keeps them when it goes to another server.
 */
import { assert } from '../base/index.ts';
import type { MetadataKey } from '../metadata/index.ts';
import type { ServerStatus } from '../protocol/index.ts';

interface Figures {
  sizeBytes: number;
  /** Calls a second; half of it is that of the time before the last two answers. */
  requestRate: number;
  server: string;
  epoch: number;
  requests: number;
  atMs: number;
  /** False until a look at all servers finds it. */
  isSeen: boolean;
}

const MS_PER_SECOND = 1000;

export class TabletFigures {
  readonly #byKey = new Map<MetadataKey, Figures>();

  get(key: MetadataKey): Pick<Figures, 'sizeBytes' | 'requestRate'> | undefined {
    return this.#byKey.get(key);
  }

  /** The server has answered, at that time. */
  answered({ name: server, tablets }: ServerStatus, atMs: number): void {
    for (const { key, epoch, sizeBytes, requests = 0 } of tablets) {
      const last = this.#byKey.get(key);
      let requestRate = last?.requestRate ?? 0;
      // another server, or the same one after another load, counts anew
      if (last?.server === server && last.epoch === epoch && requests >= last.requests && atMs > last.atMs) {
        const now = ((requests - last.requests) / (atMs - last.atMs)) * MS_PER_SECOND;
        requestRate = (requestRate + now) / 2;
      }
      assert(requestRate >= 0, 'counters of requests only grow');
      this.#byKey.set(key, { sizeBytes, requestRate, server, epoch, requests, atMs, isSeen: true });
    }
  }

  /** All servers have answered: forgets the tablets that none has named since the last time. */
  lookedAtAll(): void {
    for (const [key, figures] of this.#byKey) {
      if (figures.isSeen) figures.isSeen = false;
      else this.#byKey.delete(key);
    }
  }
}
