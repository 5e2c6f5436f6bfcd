/**
 * Times in milliseconds where microseconds are meant, as `Date.now()` gives them: refused in every place of the library
 * that takes a timestamp.
 */
import { Code, RowMutation, type Table } from '../../src/embedded/index.ts';
import { all, type LibraryRequest, refused } from './library-request.ts';

const PLACES: readonly [string, (table: Table, time: number) => Promise<unknown>][] = [
  ['a cell', async (t, time) => t.apply(new RowMutation('kept').set('f:n', 'v', time))],
  ['a cell of a batch', async (t, time) => t.applyAll([new RowMutation('kept').set('f:n', 'v', time)])],
  [
    'a cell after a check',
    async (t, time) => t.checkAndMutate('kept', { column: 'f:n' }, { then: (r) => r.set('f:n', 'v', time) }),
  ],
  ['an addition', async (t, time) => t.apply(new RowMutation('kept').add('sum:n', 1, time))],
  ['a state', async (t, time) => t.apply(new RowMutation('kept').merge('sum:n', Buffer.alloc(8), time))],
  ['a deletion since', async (t, time) => t.apply(new RowMutation('kept').delete('f:n', { since: time }))],
  ['a deletion until', async (t, time) => t.apply(new RowMutation('kept').delete('f:n', { until: time }))],
  ['a scan since', (t, time) => all(t.scan({ since: time }))],
  ['a scan until', (t, time) => all(t.scan({ until: time }))],
  ['a scan at', (t, time) => all(t.scan({ at: time }))],
  ['a get at', (t, time) => t.get('kept', { at: time })],
  ['getCell at', (t, time) => t.getCell('kept', 'f:n', time)],
  ["a row's cell at", async (t, time) => (await t.get('kept'))?.get('f:n', time)],
  ['a filter from', (t, time) => all(t.scan({ filter: { kind: 'timestampRange', range: { start: time } } }))],
  ['a filter to', (t, time) => all(t.scan({ filter: { kind: 'timestampRange', range: { end: time } } }))],
  [
    'a predicate from',
    (t, time) =>
      t.checkAndMutate(
        'kept',
        { filter: { kind: 'timestampRange', range: { start: time } } },
        { then: (r) => r.deleteRow() },
      ),
  ],
];

/** The least and the greatest that look so, one of today, and times before 1970. */
const TIMES = [1e12, 1_700_000_000_000, 1e13 - 1, -1e12, -1_700_000_000_000];

export const MILLISECOND_REQUESTS: readonly LibraryRequest[] = PLACES.flatMap(([place, ask]) =>
  TIMES.map((time) =>
    refused(
      `${place} ${time}`,
      Code.INVALID_ARGUMENT,
      new RegExp(
        `microseconds since 1970, and ${time} looks like the milliseconds of Date\\.now\\(\\).*write new Date\\(${time}\\), or ${time}n`,
      ),
      (t) => ask(t, time),
    ),
  ),
);
