/**
 * tablet: one row range of one table: its memtable, its SSTables, the merged read over them, the write path through the commit log, and its
 * compactions. Knows nothing of servers, masters or other tablets; what it needs of its server is a TabletHost.
 */
export type { Decision, DivideCommit, TabletApi, TabletRead } from './tablet-api.ts';
export type { TabletClips, TabletCommit, TabletFiles, TabletHost, TabletState } from './tablet-state.ts';
export { Tablet, type TabletOptions } from './tablet.ts';
export { COMPACTION_TASK, type CompactionJob, type CompactionKind, type CompactionResult } from './compaction-job.ts';
export { type CompactionTools, compactFiles } from './file-compaction.ts';
export { TOO_CROWDED } from './merge-choice.ts';
