/**
 * tablet: one row range of one table: its memtable, its SSTables, the merged read over them, the write path through the
 * commit log, and its compactions. Knows nothing of servers, masters or other tablets; its server is a TabletHost to
 * it.
 */
export type { Admission, Decision, DivideCommit, TabletApi, TabletRead } from './contract/tablet-api.ts';
export type { TabletClips, TabletCommit, TabletFiles, TabletHost, TabletState } from './contract/tablet-state.ts';
export { FilterCompiler } from '../filter/index.ts';
export { Tablet } from './tablet.ts';
export type { TabletOptions } from './layers/tablet-context.ts';
export {
  COMPACTION_TASK,
  type CompactionJob,
  type CompactionKind,
  type CompactionResult,
} from './contract/compaction-job.ts';
export { type CompactionTools, compactFiles } from './compact/compact-files.ts';
export { TOO_CROWDED } from './layers/merge-choice.ts';
