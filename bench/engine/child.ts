/**
 * The child process of the engine bench: does one job, sends its outcome, ends.
 */
import { openEdubba, openEdubbaOfSmallBlocks } from './edubba-store.ts';
import type { Job, SystemName } from './job.ts';
import { load, runLine } from './lines.ts';
import { openClassicLevel, openLmdb, openRocks, openSqlite } from './peer-stores.ts';
import { PARTS } from './parts.ts';
import type { OpenStore } from './store.ts';

const SYSTEMS: Readonly<Record<SystemName, OpenStore>> = {
  edubba: openEdubba,
  'edubba-8k': openEdubbaOfSmallBlocks,
  'classic-level': openClassicLevel,
  'rocksdb-native': openRocks,
  lmdb: openLmdb,
  'better-sqlite3': openSqlite,
};

const job = JSON.parse(process.argv[2] ?? '{}') as Job;
const part = PARTS[job.line];
const outcome = part
  ? await part.run(job)
  : job.line === 'load'
    ? await load(SYSTEMS[job.system], job)
    : await runLine(SYSTEMS[job.system], job);
process.send?.(outcome);
process.disconnect?.();
