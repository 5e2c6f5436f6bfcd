/**
 * How much memory the process takes over time, as far as it is in use: garbage is collected before each look where the
 * process lets us (--expose-gc).
 */
const SAMPLE_MS = 1000;
const MIB = 2 ** 20;
/**
 * Until caches, pools and compiled code have their size: of the time, and of the work, which a busy machine does later.
 */
const WARM_UP_SHARE = 0.3;
const WARM_UP_WRITES = 6000;

interface Sample {
  readonly minutes: number;
  readonly usedMib: number;
  readonly residentMib: number;
}

export class Memory {
  readonly #startMs = performance.now();
  readonly #warmMs: number;
  readonly #samples: Sample[] = [];
  #lastMs = 0;

  constructor(durationMs: number) {
    this.#warmMs = durationMs * WARM_UP_SHARE;
  }

  /** `writes`: how many were made so far. */
  sample(writes: number): void {
    const now = performance.now();
    if (now - this.#lastMs < SAMPLE_MS) return;
    this.#lastMs = now;
    if (now - this.#startMs < this.#warmMs || writes < WARM_UP_WRITES) return;
    (globalThis as { gc?: () => void }).gc?.();
    const { heapUsed, external, rss } = process.memoryUsage();
    this.#samples.push({
      minutes: (now - this.#startMs) / 60_000,
      usedMib: (heapUsed + external) / MIB,
      residentMib: rss / MIB,
    });
  }

  /** Mean, and slope in MiB a minute, after the warm-up; undefined where there are too few samples. */
  trend(
    of: 'usedMib' | 'residentMib',
  ): { readonly meanMib: number; readonly slopeMib: number; readonly grownMib: number } | undefined {
    const samples = this.#samples;
    if (samples.length < 5) return undefined;
    const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
    const x = mean(samples.map(({ minutes }) => minutes));
    const y = mean(samples.map((sample) => sample[of]));
    const up = samples.reduce((sum, sample) => sum + (sample.minutes - x) * (sample[of] - y), 0);
    const slopeMib = up / samples.reduce((sum, sample) => sum + (sample.minutes - x) ** 2, 0);
    return {
      meanMib: y,
      slopeMib,
      grownMib: slopeMib * ((samples.at(-1) as Sample).minutes - (samples[0] as Sample).minutes),
    };
  }
}
