/**
 * env: the five seams between Edubba and the world (file system, lock service, transport, clock and random, workers),
 * the codec and telemetry components, the request context and the budget of bytes; and the in-memory version of each.
 * Nothing here touches the machine: adapters that do live in `platform`.
 */
export { ByteBudget, type Relief, Reservation } from './budget/budget.ts';
export { Pace, type PaceOptions } from './budget/pace.ts';
export { Owner } from './budget/turn-queue.ts';
export { type Clock, clockOf, type Random, sleep, type Time, type Timer } from './seams/clock.ts';
export { inSlices, joinInSlices, Pacer, SLICE_MS } from './seams/pacer.ts';
export { type Checksum, type Codecs, checksumOf, type Lz4, type Zstd, type ZstdDictionary } from './seams/codecs.ts';
export {
  asRefusal,
  callCancelled,
  callRefused,
  deadlineExceeded,
  isStorageRefusal,
  notReached,
} from './calls/call-errors.ts';
export { CallNotes } from './calls/call-notes.ts';
export {
  CallContext,
  type ContextOptions,
  checkContext,
  type Interruptible,
  type Priority,
  type RequestContext,
  requestContext,
  WriteWait,
} from './calls/context.ts';
export { ContextWait, isEndless, within } from './calls/context-wait.ts';
export { openBackupStore } from './calls/backup-store.ts';
export type { Env } from './env.ts';
export { checkFilePath } from './seams/file-path.ts';
export { readPieces, writePieces } from './seams/file-pieces.ts';
export {
  APPEND_OVERHEAD_BYTES,
  type AppendOptions,
  type FileInfo,
  type FileSystem,
  type FileWriter,
  type LogAppend,
  type LogCuts,
  type LogMemo,
  type LogPosition,
  type LogWriter,
  type StorageSpace,
  type StoredFiles,
} from './seams/file-system.ts';
export type { SlotPage, SlotStore } from './seams/slot-store.ts';
export { decodeSlotHeader, isMarker, rowsOf, SLOT_HEADER_BYTES, type SlotHeader } from './slots/slot-format.ts';
export { SlotLogs, type SlotLogsOptions, withSlotLogs } from './slots/slot-logs.ts';
export { proveFiles, proveStore } from './slots/store-self-test.ts';
export { InlineWorkers } from './memory/inline-workers.ts';
export { InProcessLockService, type LastingFile, type LockStorage } from './memory/in-process-lock-service.ts';
export { LocalTransport } from './memory/local-transport.ts';
export {
  type Guard,
  type LockChange,
  type LockEvent,
  type LockHandle,
  type LockService,
  MAX_PAGE_BYTES,
  type SmallFile,
} from './seams/lock-service.ts';
export { followChanges } from './calls/follow-changes.ts';
export { endOfLease, type Instant, Lease } from './calls/lease.ts';
export { listFiles } from './calls/list-files.ts';
export {
  checkContents,
  checkPath,
  directoryOf,
  lockRefused,
  removalRefused,
  sessionEnded,
  versionRefused,
} from './calls/small-file-checks.ts';
export { ManualClock } from './memory/manual-clock.ts';
export {
  type CrashChoice,
  type FileFaults,
  type FileOperation,
  type FileSystemCounts,
  MemoryFileSystem,
} from './memory/memory-file-system.ts';
export { OverlayFileSystem } from './memory/overlay-file-system.ts';
export { MemorySlotStore } from './memory/memory-slot-store.ts';
export { MemoryLockService } from './memory/memory-lock-service.ts';
export {
  fromPlainError,
  fromPlainThrown,
  type PlainError,
  type PlainThrown,
  toPlainError,
  toPlainThrown,
} from './calls/plain-error.ts';
export { END_WAIT_MS, OwnContexts } from './calls/own-contexts.ts';
export { ChangedStream, PullStream, pullStreamOf } from './calls/pull-stream.ts';
export { isOutcomeUnknown, removeSettled, writeSettled } from './calls/settled-changes.ts';
export { SeededRandom } from './memory/seeded-random.ts';
export {
  type Counter,
  Histogram,
  type HistogramReport,
  labelled,
  LOG_LEVELS,
  type LogFields,
  type Logger,
  type LogLevel,
  Metrics,
  type MetricsReport,
  silentLogger,
  sumOfReports,
} from './seams/telemetry.ts';
export type { CallHandler, Transport } from './calls/transport.ts';
export type { Task, Workers } from './seams/workers.ts';
