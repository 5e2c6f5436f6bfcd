/**
 * Metrics of a thread that serves: its budget of requests, its heap, and how late its timers are, as a call would be.
 */
import { getHeapStatistics } from 'node:v8';
import type { Timer } from '../env/index.ts';
import type { ApiEnv } from '../wire/index.ts';

/** Period of the timer whose delay is measured. */
const PERIOD_MS = 100;

/** Reports until the returned function is called. */
export function processGauges({
  metrics,
  clock,
  requestBudget,
}: Pick<ApiEnv, 'metrics' | 'clock' | 'requestBudget'>): () => void {
  const parts = Object.entries(requestBudget.usedByPart()).map(
    ([part]) => [`requests.usedBytes.${part}`, () => requestBudget.usedByPart()[part] ?? 0] as const,
  );
  const unregister = metrics.gauges({
    ...Object.fromEntries(parts),
    'requests.limitBytes': () => requestBudget.limitBytes,
    'requests.waiting': () => requestBudget.waiting,
    'heap.usedBytes': () => getHeapStatistics().used_heap_size,
  });
  const delays = metrics.histogram('eventLoop.delayMs');
  let timer: Timer | undefined;
  const measure = (): void => {
    const dueMs = clock.monotonicMs() + PERIOD_MS;
    timer = clock.timer(PERIOD_MS, () => {
      delays.observe(Math.max(0, clock.monotonicMs() - dueMs));
      measure();
    });
  };
  measure();
  return () => {
    timer?.cancel();
    unregister();
  };
}
