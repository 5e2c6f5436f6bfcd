/**
 * Calls of masters that reach a tablet server once more, late: copies that the network has kept, after later calls, of
 * later masters too. They come from no master any more. A load or an unload that comes late or twice does nothing.
 */
import { BigtableError } from '../../src/base/index.ts';
import type { Env, Random } from '../../src/env/index.ts';
import { callServer, type TabletServerCalls } from '../../src/protocol/index.ts';
import { worldContext } from './world-context.ts';

/** Calls that are kept. */
const MAX_KEPT = 60;
const TIMEOUT_MS = 5000;

type LateCall = { readonly [M in 'load' | 'unload']: { readonly method: M; readonly message: Message<M> } }[
  | 'load'
  | 'unload'];
type Message<M extends keyof TabletServerCalls> = TabletServerCalls[M]['message'];

export class LateCalls {
  readonly #counts: { lateCalls: number };
  readonly #random: Random;
  readonly #kept: LateCall[] = [];

  constructor(random: Random, counts: { lateCalls: number }) {
    this.#random = random;
    this.#counts = counts;
  }

  /** A server was called. */
  called(method: string, message: unknown): void {
    if (method !== 'load' && method !== 'unload') return;
    this.#kept.push({ method, message } as LateCall);
    if (this.#kept.length > MAX_KEPT) this.#kept.shift();
  }

  /** Sends one of the calls again. `addressOf`: the address of a server that lives, by its name. */
  async repeatOne(env: Env, addressOf: (name: string) => string | undefined): Promise<void> {
    const call = this.#kept[Math.floor(this.#random.float() * this.#kept.length)];
    const address = addressOf(call?.message.to ?? '');
    if (call === undefined || address === undefined) return;
    this.#counts.lateCalls++;
    const context = worldContext(env, TIMEOUT_MS);
    const answered =
      call.method === 'load'
        ? callServer(env.transport, address, 'load', call.message, context)
        : callServer(env.transport, address, 'unload', call.message, context);
    await answered.catch((thrown: unknown) => {
      if (!(thrown instanceof BigtableError)) throw thrown;
    });
  }
}
