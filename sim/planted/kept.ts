/** Bugs of backups, of deleted tables that are kept, and of change streams (decisions 101, 105 and 106). */
import type { PlantedBug } from './bug.ts';

const SWEEP = 'master/sweep.ts';

export const KEPT_BUGS: readonly PlantedBug[] = [
  {
    name: 'K1',
    title: 'a restored table begins at an epoch below that of its files',
    changes: [
      {
        file: 'metadata/commit.ts',
        text: 'epoch: Math.max(row.epoch, row.redo.epoch) + 1,',
        wrong: 'epoch: row.epoch + 1,',
      },
    ],
  },
  {
    name: 'K2',
    title: 'a sweep does not spare the files of backups',
    changes: [
      {
        file: SWEEP,
        text: 'for (const group of Object.values(row.files)) for (const path of group) files.delete(path);',
        wrong:
          'if (!row.isOfBackup) for (const group of Object.values(row.files)) for (const path of group) files.delete(path);',
      },
    ],
  },
  {
    name: 'K3',
    title: 'a backup lacks what is not in files',
    changes: [
      {
        file: 'tablet/tablet.ts',
        text: 'async shareFiles(): Promise<TabletState> {\n    await this.flush();',
        wrong: 'async shareFiles(): Promise<TabletState> {',
      },
      {
        file: 'master/backups.ts',
        text: "servers.caller.callUntilDone(server, 'flush', { keys: refs.map(({ key }) => key) }, context),",
        wrong: 'refs.length > 0 && server !== undefined,',
      },
    ],
  },
  {
    name: 'K4',
    title: 'a sweep does not spare the logs that a change stream needs',
    changes: [{ file: SWEEP, text: 'for (const path of past) logs.delete(path);', wrong: 'past.clear();' }],
  },
  {
    name: 'K5',
    title: 'the owner of a tablet whose server died is not named for the change stream',
    changes: [
      {
        file: 'metadata/commit.ts',
        text: '...withPastOwner(row, atMicros),\n    server: { name, address },',
        wrong: '...row,\n    changesFrom: undefined,\n    server: { name, address },',
      },
    ],
  },
  {
    name: 'K6',
    title: 'the tablets of a kept table are released without a flush',
    changes: [
      { file: 'master/kept-tables.ts', text: '{ tablets, flush: true }', wrong: '{ tablets, flush: false }' },
      {
        file: 'tabletserver/tablet-loader.ts',
        text: 'await this.release(served, flush || !(await this.#isGone(key)));',
        wrong: 'await this.release(served, flush);',
      },
    ],
  },
  {
    name: 'K7',
    title: 'a log is trimmed as if no change stream read it',
    changes: [
      {
        file: 'tabletserver/change-retention.ts',
        text: 'return Math.min(this.#notes[0]!.position, position, log.newestPosition);',
        wrong: 'return Math.min(position, log.newestPosition);',
      },
    ],
  },
  {
    name: 'K8',
    title: "a change stream reads its server's own log alone",
    changes: [
      {
        file: 'tabletserver/change-reader.ts',
        text: 'if (i < begin || (first === undefined && this.#isTooOld(part))) continue;',
        wrong: 'if (i < begin || part.server !== this.#options.serverName) continue;',
      },
    ],
  },
  {
    name: 'K9',
    title: 'a backup that was being created when the master looked, and is finished, is deleted as one that is not',
    changes: [
      {
        file: 'master/backups.ts',
        text: "const isUnfinished = again.file.state === 'creating';",
        wrong: 'const isUnfinished = isLeft;',
      },
    ],
  },
  {
    name: 'K10',
    title: 'a replay begins with the newest append of a log that keeps nothing for change streams',
    changes: [
      {
        file: 'commitlog/log-reader.ts',
        text: '.header.replayFrom ?? 0);',
        wrong: '.header.replayFrom ?? append.position);',
      },
    ],
  },
  {
    name: 'K11',
    title: 'a server that releases a tablet says that its changes end where they begin',
    changes: [
      {
        file: 'tabletserver/tablet-host.ts',
        text: '? undefined : this.#services.newestPosition() }',
        wrong: '? undefined : this.#changesFrom }',
      },
    ],
  },
];
