/**
 * What a thread that serves tells of itself beside its calls: its budget of requests, its heap, and how late its timers are, which is what a call waits while
 * something else runs.
 */
import { getHeapStatistics } from 'node:v8';
import type { Timer } from '../env/index.ts';
import type { ApiEnv } from '../wire/index.ts';

/** The event loop is looked at so often. */
const LOOK_MS = 100;

/** Until the function returned is called. */
export function processGauges({
  metrics,
  clock,
  requestBudget,
}: Pick<ApiEnv, 'metrics' | 'clock' | 'requestBudget'>): () => void {
  const parts = Object.entries(requestBudget.usedByPart()).map(
    ([part]) => [`requests.usedBytes.${part}`, () => requestBudget.usedByPart()[part] ?? 0] as const,
  );
  const forget = metrics.gauges({
    ...Object.fromEntries(parts),
    'requests.limitBytes': () => requestBudget.limitBytes,
    'requests.waiting': () => requestBudget.waiting,
    'heap.usedBytes': () => getHeapStatistics().used_heap_size,
  });
  const delays = metrics.histogram('eventLoop.delayMs');
  let timer: Timer | undefined;
  const look = (): void => {
    const dueMs = clock.monotonicMs() + LOOK_MS;
    timer = clock.timer(LOOK_MS, () => {
      delays.observe(Math.max(0, clock.monotonicMs() - dueMs));
      look();
    });
  };
  look();
  return () => {
    timer?.cancel();
    forget();
  };
}
