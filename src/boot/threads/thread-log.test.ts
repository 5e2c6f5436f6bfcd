import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type LogFields, Metrics, silentLogger } from '../../env/index.ts';
import { logCounts, type LogNotice, takeLine, threadLogger } from './thread-log.ts';

test('lines that the main thread does not take are dropped, counted, and reported; lines of the access log sooner than others', () => {
  const counts = logCounts();
  const sent: LogNotice[] = [];
  const thread = threadLogger(counts, (notice) => void sent.push(notice));
  for (let i = 0; i < 5000; i++) thread.access({ i });
  assert.equal(sent.length, 1000);
  for (let i = 0; i < 5000; i++) thread.warn('w', { i });
  assert.equal(sent.length, 2000);

  const metrics = new Metrics();
  const lines: string[] = [];
  const write =
    (kind: string) =>
    (message: string, fields: LogFields = {}) =>
      void lines.push(`${kind} ${message} ${JSON.stringify(fields)}`);
  const logger = { ...silentLogger, warn: write('warn'), access: (fields: LogFields) => write('access')('', fields) };
  for (const notice of sent.splice(0)) takeLine(notice, counts, 7, { logger, metrics });
  assert.equal(metrics.get('logLines.dropped'), 8000);
  assert.deepEqual(lines.slice(0, 2), [
    'warn log lines of a thread were dropped: they are made faster than they are taken {"count":8000,"thread":7}',
    'access  {"i":0,"thread":7}',
  ]);
  assert.deepEqual([lines.length, lines.at(-1)], [2001, 'warn w {"i":999,"thread":7}']);
  // lines are taken again, and no drop is reported twice
  thread.error('e');
  assert.equal(sent.length, 1);
});
