/**
 * env: the five seams between Edubba and the world (file system, lock service, transport, clock and random, workers), the
 * codec and telemetry components, the request context and the budget of bytes; and the in-memory version of each.
 * Nothing here touches the machine: adapters that do live in `platform`.
 */
export { ByteBudget, type Relief, Reservation } from './budget.ts';
export { Pace, type PaceOptions } from './pace.ts';
export { Owner } from './turn-queue.ts';
export { type Clock, inParts, Pacer, type Random, STEP_MS, sleep, type Timer } from './clock.ts';
export type { Checksum, Codecs, Lz4, Zstd, ZstdDictionary } from './codecs.ts';
export { CallNotes } from './call-notes.ts';
export { CallContext, type ContextOptions, checkContext, type Interruptible, type Priority, type RequestContext, requestContext } from './context.ts';
export { ContextWait, isEndless, within } from './context-wait.ts';
export type { Env } from './env.ts';
export { checkFilePath } from './file-path.ts';
export { APPEND_OVERHEAD_BYTES, type AppendOptions, type FileInfo, type FileSystem, type FileWriter, type LogAppend, type LogPosition, type LogWriter } from './file-system.ts';
export { InlineWorkers } from './inline-workers.ts';
export { InProcessLockService, type LastingFile, type LockStorage } from './in-process-lock-service.ts';
export { LocalTransport } from './local-transport.ts';
export type { Guard, LockEvent, LockHandle, LockService, SmallFile } from './lock-service.ts';
export { ManualClock } from './manual-clock.ts';
export { type CrashChoice, type FileFaults, type FileOperation, type FileSystemCounts, MemoryFileSystem } from './memory-file-system.ts';
export { OverlayFileSystem } from './overlay-file-system.ts';
export { MemoryLockService } from './memory-lock-service.ts';
export { fromPlainError, type PlainError, toPlainError } from './plain-error.ts';
export { PullStream, pullStreamOf } from './pull-stream.ts';
export { SeededRandom } from './seeded-random.ts';
export { type Counter, Histogram, type HistogramReport, labelled, LOG_LEVELS, type LogFields, type Logger, type LogLevel, Metrics, type MetricsReport, silentLogger, sumOfReports } from './telemetry.ts';
export type { CallHandler, Transport } from './transport.ts';
export type { Task, Workers } from './workers.ts';
