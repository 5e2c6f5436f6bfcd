import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, Metrics } from '../env/index.ts';
import { LogWriter, type LogWriterOptions } from './log-writer.ts';

/** An output that takes a piece when the test lets it. */
class SlowOutput {
  text = '';
  #take: (() => void) | undefined;

  write(text: string): Promise<void> {
    assert.equal(this.#take, undefined, 'one piece at a time');
    return new Promise((resolve) => {
      this.#take = () => {
        this.#take = undefined;
        this.text += text;
        resolve();
      };
    });
  }

  get isAsked(): boolean {
    return this.#take !== undefined;
  }

  /** Takes everything. */
  async takeAll(): Promise<void> {
    for (let idle = 0; idle < 10; idle++) {
      if (this.#take) [idle] = [0, this.#take()];
      await Promise.resolve();
    }
  }
}

function writer(options: Partial<LogWriterOptions> = {}): { log: LogWriter; output: SlowOutput; metrics: Metrics } {
  const [output, metrics] = [new SlowOutput(), new Metrics()];
  return {
    output,
    metrics,
    log: new LogWriter({ clock: new ManualClock(), output, level: 'warn', format: 'json', metrics, ...options }),
  };
}

const messagesOf = (text: string): string[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line).message);

test('writes lines of its level and above, in order, and those of the access log at every level', async () => {
  for (const [level, wanted] of [
    ['debug', ['d', 'i', 'w', 'e', 'call']],
    ['info', ['i', 'w', 'e', 'call']],
    ['warn', ['w', 'e', 'call']],
    ['error', ['e', 'call']],
  ] as const) {
    const { log, output } = writer({ level });
    log.debug('d');
    log.info('i');
    log.warn('w');
    log.error('e');
    log.access({});
    await output.takeAll();
    assert.deepEqual(messagesOf(output.text), wanted);
  }
});

test('an output that takes nothing costs bounded memory: lines in excess are dropped, counted, and reported when there is space again', async () => {
  const { log, output, metrics } = writer();
  const fields = { value: 'v'.repeat(900) };
  let dropped = 0;
  for (let i = 0; i < 20_000; i++) {
    log.access(fields);
    if (i === 10_000) assert.ok(metrics.get('logLines.dropped') > 9000);
  }
  dropped = metrics.get('logLines.dropped');
  assert.ok(dropped > 19_000, `${dropped}`);
  // lines of the access log have left space for others
  log.warn('important');
  assert.equal(metrics.get('logLines.dropped'), dropped);
  for (let i = 0; i < 5000; i++) log.warn('more', fields);
  const all = metrics.get('logLines.dropped');
  assert.ok(all > dropped);
  await output.takeAll();
  assert.ok(output.text.length < 1_200_000, `${output.text.length}`);
  const lines = output.text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  assert.ok(lines.some(({ message }) => message === 'important'));
  const reported = lines
    .filter(({ message }) => message.startsWith('log lines were dropped'))
    .reduce((sum, { count }) => sum + count, 0);
  assert.equal(reported, all, 'each dropped line is reported once');
  log.warn('after');
  await output.takeAll();
  assert.equal(messagesOf(output.text).at(-1), 'after');
});

test('flush resolves when all is written', async () => {
  const { log, output } = writer();
  log.warn('a');
  let isFlushed = false;
  const flushed = log.flush().then(() => void (isFlushed = true));
  while (!output.isAsked) await Promise.resolve();
  assert.equal(isFlushed, false);
  await output.takeAll();
  await flushed;
  assert.deepEqual(messagesOf(output.text), ['a']);
});
