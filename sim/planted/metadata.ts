/** Bugs of METADATA's own tablets, whose rows are in the root tablet or in a file (model A with two levels). */
import type { PlantedBug } from './bug.ts';

const ASSIGNMENT = 'master/assignment.ts';
const COMMIT = 'metadata/commit.ts';
const SERVERS = 'master/servers.ts';
const SWEEP = 'master/sweep.ts';

export const METADATA_BUGS: readonly PlantedBug[] = [
  {
    name: 'A28',
    title: "an assignment overwrites the list of logs of METADATA's tablets",
    changes: [
      {
        file: COMMIT,
        text: 'row.logs.includes(log) ? row.logs : [...row.logs, log]',
        wrong: 'row.tableId === METADATA_TABLE_ID ? [log] : row.logs.includes(log) ? row.logs : [...row.logs, log]',
      },
    ],
  },
  {
    name: 'A29',
    title: "METADATA's tablets of a dead server are given away before its log is fenced",
    meeting: 'sweep in a recovery',
    changes: [
      {
        file: 'master/recoveries.ts',
        text: 'if (!(await servers.isDead(name))) {',
        wrong: `const known = [...(servers.get(name)?.tablets.keys() ?? [])];
    if (!(await servers.isDead(name, !known.some((key) => key.startsWith('00000000'))))) {`,
      },
      {
        file: ASSIGNMENT,
        text: 'return (await servers.isDead(name)) ? [name] : [];',
        wrong: `const waits = !rows.some(({ tableId }) => tableId === METADATA_TABLE_ID);
        return (await servers.isDead(name, waits)) ? [name] : [];`,
      },
      {
        file: SERVERS,
        text: 'async isDead(name: string): Promise<boolean> {',
        wrong: 'async isDead(name: string, waits = true): Promise<boolean> {',
      },
      {
        file: SERVERS,
        text: 'await fencing.catch((error: unknown) => {',
        wrong: 'fencing.catch(() => {}); await (waits ? fencing : Promise.resolve()).catch((error: unknown) => {',
      },
    ],
  },
  {
    name: 'A30',
    title: "a sweep deletes the logs that rows of METADATA's tablets list",
    meeting: 'deaths beside a sweep',
    changes: [
      {
        file: SWEEP,
        text: 'import { continues, type MetadataRow, ROOT_RANGE',
        wrong: 'import { continues, METADATA_TABLE_ID, type MetadataRow, ROOT_RANGE',
      },
      {
        file: SWEEP,
        text: 'for (const path of row.logs) logs.delete(path);',
        wrong: 'if (row.tableId !== METADATA_TABLE_ID) for (const path of row.logs) logs.delete(path);',
      },
    ],
  },
  {
    name: 'A31',
    title: "commits to the rows of METADATA's tablets are conditional on the epoch alone",
    meeting: 'sweep at a reused address',
    changes: [
      {
        file: COMMIT,
        text: 'row.epoch === expected.epoch && row.version === expected.version',
        wrong:
          'row.epoch === expected.epoch && (row.tableId === METADATA_TABLE_ID || row.version === expected.version)',
      },
    ],
  },
  {
    name: 'A32',
    title: 'a master waits for METADATA, which only its next look would have served',
    changes: [
      { file: 'master/master.ts', text: 'onStall: () => this.#lookAtMetadataAnew(),', wrong: '' },
      {
        file: 'master/recoveries.ts',
        text: 'else queue.recover(keys);',
        wrong: "else queue.recover(keys.filter((key) => !key.startsWith('00000000')));",
      },
    ],
  },
  {
    name: 'N24',
    title: 'a creation that arrives again creates a row that was merged with its neighbour',
    changes: [
      {
        file: 'tabletserver/metadata-commits.ts',
        text: 'createdRow(commit) !== undefined && gone.has(commit.rows[0]!.key)',
        wrong: 'createdRow(commit) !== undefined && gone === undefined',
      },
    ],
  },
  {
    name: 'N25',
    title: 'the row of a tablet that its server has released lists the log of that server, which is still written to',
    changes: [
      {
        file: 'master/new-rows.ts',
        text: 'return withoutLog(row, logPathOf(row.server.name));',
        wrong: "return row.tableId === '' ? withoutLog(row, logPathOf(row.server.name)) : row;",
      },
    ],
  },
  {
    name: 'N26',
    title: 'a server whose log has failed releases a tablet, though the log may hold a change of it',
    changes: [{ file: 'tabletserver/tablet-loader.ts', text: 'if (flush) services.checkLog();', wrong: '' }],
  },
];
