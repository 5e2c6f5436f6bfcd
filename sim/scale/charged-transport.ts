/** The transport of a master whose calls are charged with CPU time of its own end. */
import type { CallHandler, RequestContext, Transport } from '../../src/env/index.ts';
import type { ReadBatch } from '../../src/model/index.ts';
import type { TabletServerCalls } from '../../src/protocol/index.ts';
import { CPU } from './costs.ts';
import type { Cpu } from './cpu.ts';

/** Two unloads further apart than this belong to two plans. */
const PLAN_GAP_MS = 3000;

export class ChargedTransport implements Transport {
  readonly #inner: Transport;
  readonly #cpu: Cpu;
  readonly #nowMs: () => number;
  #lastUnloadMs = Number.NEGATIVE_INFINITY;
  /** By method, the calls that were made. */
  readonly calls: Record<string, number> = {};

  constructor(inner: Transport, cpu: Cpu, nowMs: () => number) {
    this.#inner = inner;
    this.#cpu = cpu;
    this.#nowMs = nowMs;
  }

  serve(address: string, handler: CallHandler): Promise<() => Promise<void>> {
    return this.#inner.serve(address, handler);
  }

  async call(address: string, method: string, message: unknown, context: RequestContext): Promise<unknown> {
    this.calls[method] = (this.calls[method] ?? 0) + 1;
    await this.#cpu.work(CPU.callMs + this.#costOf(method, message));
    const answer = await this.#inner.call(address, method, message, context);
    if (method === 'status') {
      const { tablets } = answer as TabletServerCalls['status']['answer'];
      await this.#cpu.work(CPU.statusTabletMs * tablets.length);
    }
    return answer;
  }

  #costOf(method: string, message: unknown): number {
    if (method === 'commit') {
      const { commits } = message as TabletServerCalls['commit']['message'];
      return CPU.commitCallMs + CPU.commitRowMs * commits.length;
    }
    if (method === 'load') return CPU.tabletRefMs * (message as TabletServerCalls['load']['message']).tablets.length;
    if (method !== 'unload') return 0;
    const isPlan = this.#nowMs() - this.#lastUnloadMs > PLAN_GAP_MS;
    this.#lastUnloadMs = this.#nowMs();
    return CPU.tabletRefMs + (isPlan ? CPU.planMs : 0);
  }

  async *stream(address: string, method: string, message: unknown, context: RequestContext): AsyncIterable<unknown> {
    this.calls[method] = (this.calls[method] ?? 0) + 1;
    await this.#cpu.work(CPU.callMs);
    for await (const item of this.#inner.stream(address, method, message, context)) {
      const { fragments } = item as ReadBatch;
      // a read of one row costs more than a row of a scan, most of it for the call
      await this.#cpu.work(fragments.length === 1 ? CPU.readRowMs - CPU.callMs : CPU.scanRowMs * fragments.length);
      yield item;
    }
  }
}
