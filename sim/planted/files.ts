/** Bugs of the sweep, of METADATA's changes and of splits and merges (models A and C). */
import type { PlantedBug } from './bug.ts';

const SWEEP = 'master/sweep.ts';
const COMMIT = 'metadata/commit.ts';
const MERGE = 'master/tablet-merge.ts';

const ANSWERED = 'return !servers.anySilent && asked.every(({ name }) => holdings.has(name)) ? holdings : undefined;';
const ASK = `  const holdings = await holdingsOfAll(servers, context);
  if (holdings === undefined) return NOTHING;
  spareHeld(holdings);
`;
const ASK_AGAIN = `  const later = await holdingsOfAll(servers, context);
  if (later === undefined) return NOTHING;
  spareHeld(later);
`;
const DELETE = '  // the largest first: what ends the sweep before its time leaves the least';
const SCAN = `for await (const rows of metadata.scan(range, context)) {
      for (const row of rows) {
        if (!continues(row, before) || !spare(row)) return NOTHING;
        before = row;
      }
    }`;
const KEYS_TOO = {
  file: SWEEP,
  text: 'import { continues, type MetadataRow, ROOT_RANGE',
  wrong: 'import { continues, keyOfRow, type MetadataRow, ROOT_RANGE',
};
const FIND_DEAD = `  const dead = await servers.findDead(owners);
  const logs = new Set([...dead].map(logPathOf));
`;

/** The sweep asks the servers once: its second question hides some mistakes of its scan. */
const ASKS_ONCE = { file: SWEEP, text: ASK_AGAIN, wrong: '' };

const NOT_ANSWERED = { file: SWEEP, text: ANSWERED, wrong: 'assert(asked.length >= 0);\n  return holdings;' };

export const FILE_BUGS: readonly PlantedBug[] = [
  {
    name: 'A22',
    title: 'a sweep does not ask the servers what they hold',
    meeting: 'commit beside a sweep',
    changes: [{ file: SWEEP, text: 'for (const path of paths) files.delete(path);', wrong: '' }],
  },
  {
    name: 'A23',
    title: 'a sweep does not wait for the commits of servers that have not answered',
    meeting: 'sweep beside a silent server',
    changes: [
      NOT_ANSWERED,
      { file: SWEEP, text: 'row.server === undefined || holdings.has(row.server.name)', wrong: 'true' },
    ],
  },
  {
    name: 'N19',
    title: 'a sweep does not wait for a server that no row names',
    meeting: 'deaths beside a sweep',
    changes: [NOT_ANSWERED],
  },
  {
    name: 'A24',
    title: 'a sweep scans METADATA before it asks the servers',
    meeting: 'commit beside a sweep',
    changes: [
      { file: SWEEP, text: ASK, wrong: '  const holdings = new Map(servers.all().map((one) => [one.name, one]));\n' },
    ],
  },
  {
    name: 'N21',
    title: 'a sweep asks the servers what they hold before the scan alone',
    meeting: 'commit beside a sweep',
    changes: [ASKS_ONCE],
  },
  {
    name: 'C01',
    title: 'a split changes the row of its parent alone',
    changes: [{ file: COMMIT, text: '{ key: keyOfRow(lowRow), expected: undefined, row: lowRow },', wrong: '' }],
  },
  {
    name: 'C02',
    title: 'a split changes the row of its parent first',
    changes: [
      {
        file: 'tabletserver/tablet-host.ts',
        text: 'if (await this.#isDone(commit, parts[1]))',
        wrong:
          'if ((await this.#isDone({ ...commit, rows: [commit.rows[1]!] }, parts[1])) && (await this.#isDone({ ...commit, rows: [commit.rows[0]!] }, parts[1])))',
      },
    ],
  },
  {
    name: 'C03',
    title: 'a split goes on beside another commit of its tablet, both conditional on the epoch alone',
    changes: [
      {
        file: 'tablet/tablet.ts',
        text: 'return await commits.inTurn(() =>',
        wrong: 'return await ((work: () => Promise<readonly [Tablet, Tablet]>) => work())(() =>',
      },
      {
        file: 'tabletserver/tablet-host.ts',
        text: "assert(!this.#isCommitting, 'one commit of a tablet is under way at a time');",
        wrong: '',
      },
      {
        file: COMMIT,
        text: 'row.epoch === expected.epoch && row.version === expected.version',
        wrong: 'row.epoch === expected.epoch',
      },
    ],
  },
  {
    name: 'C05',
    title: 'splits are unconditional',
    meeting: 'split of METADATA under commits',
    changes: [
      {
        file: COMMIT,
        text: 'if (commit.rows.every(({ key, expected }) =>',
        wrong: "if (commit.event.kind === 'split' || commit.rows.every(({ key, expected }) =>",
      },
    ],
  },
  {
    name: 'C06',
    title: 'a merge does not release its two rows first',
    changes: [
      { file: MERGE, text: 'releasedAt(now, event.atMicros)', wrong: '{ ...now }' },
      {
        file: MERGE,
        text: 'if (server !== undefined || logs.length > 0) throw changed();',
        wrong: 'if (server === null && logs.length > 0) throw changed();',
      },
      { file: MERGE, text: 'merged !== undefined && merged.server === undefined,', wrong: 'merged !== undefined,' },
      { file: COMMIT, text: 'server === undefined && logs.length === 0,', wrong: 'true,' },
    ],
  },
  {
    name: 'C07',
    title: 'a merge releases its upper row alone',
    changes: [
      { file: MERGE, text: 'releasedAt(now, event.atMicros)', wrong: '{ ...now, epoch: epoch + 1 }' },
      { file: MERGE, text: 'await Promise.all(owned.map(', wrong: 'await Promise.all(owned.slice(1).map(' },
      {
        file: MERGE,
        text: 'if (server !== undefined || logs.length > 0) throw changed();',
        wrong: 'if (server === null && logs.length > 0) throw changed();',
      },
      { file: MERGE, text: 'merged !== undefined && merged.server === undefined,', wrong: 'merged !== undefined,' },
      { file: COMMIT, text: 'server === undefined && logs.length === 0,', wrong: 'true,' },
    ],
  },
  {
    name: 'C08',
    title: 'a merge changes its two rows by two commits, the upper one first',
    changes: [
      {
        file: MERGE,
        text: 'await commitAll(metadata, commit, context);',
        wrong: `await commitAll(metadata, { ...commit, rows: commit.rows.slice(1) }, context);
  await commitAll(metadata, { ...commit, rows: commit.rows.slice(0, 1) }, context);`,
      },
    ],
  },
  {
    name: 'C09',
    title: 'a sweep finds the keys of METADATA, and reads each row later',
    meeting: 'divisions beside a sweep',
    changes: [
      ASKS_ONCE,
      KEYS_TOO,
      {
        file: SWEEP,
        text: SCAN,
        wrong: `const keys: string[] = [];
    for await (const rows of metadata.scan(range, context)) keys.push(...rows.map(keyOfRow));
    for (const key of keys) {
      const row = await metadata.readRow(key, context);
      if (row && !spare(row)) return NOTHING;
    }`,
      },
    ],
  },
  {
    name: 'C10',
    title: 'a sweep reads METADATA downwards, a row at a time',
    meeting: 'lower division beside a sweep',
    changes: [
      ASKS_ONCE,
      KEYS_TOO,
      {
        file: SWEEP,
        text: SCAN,
        wrong: `const all: MetadataRow[] = [];
    for await (const rows of metadata.scan(range, context)) all.push(...rows);
    for (const { tableId, range: ofRow } of all.reverse()) {
      const row = await metadata.readRow(keyOfRow({ tableId, range: ofRow }), context);
      if (row && !spare(row)) return NOTHING;
    }`,
      },
    ],
  },
  {
    name: 'N8',
    title: 'a sweep goes on where the rows that it read do not meet',
    meeting: 'split in a merge',
    changes: [ASKS_ONCE, { file: SWEEP, text: '!continues(row, before) || ', wrong: '' }],
  },
  {
    name: 'N10',
    title: 'a tablet is unloaded while it is split',
    meeting: 'divisions beside a sweep',
    changes: [
      {
        file: 'tabletserver/tablet-loader.ts',
        text: 'while (splitOf(served.key) !== undefined) await splitOf(served.key);',
        wrong: '',
      },
    ],
  },
  {
    name: 'N11',
    title: 'a schema that cannot be read is taken for one that is not there',
    meeting: 'unheard change of a schema',
    changes: [
      {
        file: 'locator/schema-cache.ts',
        text: 'if (!cannotBeUnderstood(thrown)) throw thrown;',
        wrong: 'if (!cannotBeUnderstood(thrown)) return;',
      },
    ],
  },
  {
    name: 'N9',
    title: 'a look at METADATA forgets recoveries that are under way',
    meeting: 'divisions beside a sweep',
    changes: [{ file: 'master/recoveries.ts', text: "state === 'done' && ", wrong: 'state && ' }],
  },
  {
    name: 'N2',
    title: 'a sweep finds out who is dead after its scan of METADATA',
    meeting: 'deaths beside a sweep',
    changes: [
      {
        file: SWEEP,
        text: FIND_DEAD,
        wrong: '  const dead = new Set<string>();\n  const logs = new Set(owners.map(logPathOf));\n',
      },
      {
        file: SWEEP,
        text: DELETE,
        wrong: `  const late = await servers.findDead(owners);
  for (const path of logs) if (!late.has(path.slice(LOGS_DIRECTORY.length))) logs.delete(path);
${DELETE}`,
      },
    ],
  },
];
