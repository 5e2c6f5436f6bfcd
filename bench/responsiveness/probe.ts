/**
 * Loaded before the server, in its process: tells the parent, when asked, how long the event loop was held since it
 * last asked.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Milliseconds; the histogram counts its own timer of 1 ms, which is taken off. */
export interface Held {
  readonly longestMs: number;
  readonly p99Ms: number;
  /** The most that was resident since the process began. */
  readonly peakRssBytes: number;
}

const NANOS_A_MS = 1e6;
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
process.on('message', () => {
  const held: Held = {
    longestMs: Math.max(0, delay.max / NANOS_A_MS - 1),
    p99Ms: Math.max(0, delay.percentile(99) / NANOS_A_MS - 1),
    peakRssBytes: process.resourceUsage().maxRSS * 1024,
  };
  delay.reset();
  process.send?.(held);
});
// the server ends when it is stopped, not when no caller is left
process.channel?.unref();
