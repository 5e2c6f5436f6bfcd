/**
 * The progress of long work, on standard error: one rewritten line on a terminal, and nothing elsewhere unless
 * --progress asks for lines.
 *
 * Invariant: at most five lines a second; nothing of it is on standard output; the line is gone when the work has
 * ended.
 */
import { systemClock } from '../../boot/index.ts';
import type { Timer } from '../../env/index.ts';
import { jsonLine } from './output.ts';
import type { Terminal } from './terminal.ts';

/** Short work shows nothing. */
const FIRST_MS = 500;
const REWRITE_MS = 200;
/** Lines stay, so there are fewer of them. */
const LINE_MS = 2000;
const DEFAULT_COLUMNS = 80;
const CLEAR_LINE = '\r\x1b[K';

export interface ProgressOptions {
  /** Lines even where standard error is no terminal. */
  readonly progress?: boolean;
  readonly json?: boolean;
}

/** Does the work; meanwhile `describe` is asked what there is to say. The time that has gone by is added to it. */
export async function withProgress<T>(
  terminal: Terminal,
  options: ProgressOptions,
  describe: () => string,
  work: () => Promise<T>,
): Promise<T> {
  const { progress = false, json = false } = options;
  const { clock = systemClock, columns } = terminal;
  const isRewritten = columns !== undefined && !json;
  if (!isRewritten && !progress) return work();
  const startMs = clock.monotonicMs();
  const tell = (): void => {
    const message = `${describe()}, ${Math.round((clock.monotonicMs() - startMs) / 1000)} s`;
    // a line as wide as the terminal would begin another one
    if (isRewritten)
      terminal.complain(`${CLEAR_LINE}${[...message].slice(0, (columns || DEFAULT_COLUMNS) - 1).join('')}`);
    else terminal.complain(json ? jsonLine({ progress: { message } }) : `${message}\n`);
  };
  let timer: Timer;
  let isShown = false;
  const tick = (): void => {
    isShown = true;
    tell();
    timer = clock.timer(isRewritten ? REWRITE_MS : LINE_MS, tick);
  };
  timer = clock.timer(FIRST_MS, tick);
  try {
    return await work();
  } finally {
    timer.cancel();
    if (isShown && isRewritten) terminal.complain(CLEAR_LINE);
  }
}
