/**
 * All metrics of a server: what each is called outside, by the conventions of Prometheus (base units, `_total` behind counters), what it means, and by which
 * name of `env`'s Metrics it is counted. docs/METRICS.md is made from this table.
 *
 * Invariant: values of labels come from small fixed sets (methods of the API, codes, parts), never from callers: no table, row or principal is one.
 */

export interface MetricSeries {
  /** The name by which it is counted. Where the metric has labels of its own their values stand behind it. */
  readonly source: string;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface MetricDefinition {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** Names of the labels whose values stand behind the source's name, in their order. */
  readonly labels?: readonly string[];
  readonly series: readonly MetricSeries[];
  /** By what a value is multiplied: 0.001 for durations, which are counted in milliseconds. */
  readonly factor?: number;
}

const MS = 0.001;

const counter = (name: string, source: string, help: string): MetricDefinition => ({
  name: `edubba_${name}_total`,
  type: 'counter',
  help,
  series: [{ source }],
});
const gauge = (name: string, source: string, help: string): MetricDefinition => ({
  name: `edubba_${name}`,
  type: 'gauge',
  help,
  series: [{ source }],
});

const BUDGET_PARTS = ['small', 'arriving', 'unread', 'common'];

const CALLS: readonly MetricDefinition[] = [
  {
    name: 'edubba_calls_total',
    type: 'counter',
    labels: ['method', 'code'],
    series: [{ source: 'calls.ended' }],
    help: 'Calls that have ended, by method and gRPC code. Methods that do not exist are one: unknown.',
  },
  {
    name: 'edubba_call_duration_seconds',
    type: 'histogram',
    labels: ['method'],
    factor: MS,
    series: [{ source: 'calls.durationMs' }],
    help: 'Time from the headers of a call until its answer was sent or lost.',
  },
  {
    name: 'edubba_calls_in_flight',
    type: 'gauge',
    labels: ['method'],
    series: [{ source: 'calls.inFlight' }],
    help: 'Calls that have begun and not ended.',
  },
  counter('slow_calls', 'calls.slow', 'Calls that took longer than --slow-ms.'),
  counter(
    'calls_passed_on',
    'transport.callsPassedOn',
    'Calls from one thread to another, where tablet servers have threads of their own.',
  ),
];

const CONNECTIONS: readonly MetricDefinition[] = [
  gauge('connections', 'wire.connections', 'Connections that are open, in whatever stage.'),
  gauge('connections_limit', 'wire.maxConnections', 'The most connections at once.'),
  counter('connections_accepted', 'wire.acceptedConnections', 'Connections that were taken in.'),
  counter(
    'connections_refused',
    'wire.refusedConnections',
    'Connections that were closed at once, because there were too many.',
  ),
  counter(
    'connections_replaced',
    'wire.replacedConnections',
    'Idle connections that were ended to make room for new ones.',
  ),
  counter(
    'handshakes_timed_out',
    'wire.lateHandshakes',
    'Connections that were ended because their handshake took too long.',
  ),
];

const MEMORY: readonly MetricDefinition[] = [
  {
    name: 'edubba_request_budget_used_bytes',
    type: 'gauge',
    help: 'Bytes of requests in flight and of answers not yet sent, by part of the budget.',
    series: BUDGET_PARTS.map((part) => ({ source: `requests.usedBytes.${part}`, labels: { part } })),
  },
  gauge(
    'request_budget_limit_bytes',
    'requests.limitBytes',
    'The most bytes of requests in flight and of answers not yet sent, all parts together.',
  ),
  gauge('requests_waiting', 'requests.waiting', 'Requests that wait for room in the budget.'),
  gauge(
    'memtables_used_bytes',
    'memtables.usedBytes',
    'Bytes of all memtables: what was written and is not in files yet.',
  ),
  gauge(
    'memtables_limit_bytes',
    'memtables.limitBytes',
    'The most bytes of all memtables: writes wait at it, and flushes begin at half of it.',
  ),
  gauge(
    'memtables_refusing',
    'memtables.refusing',
    'Tablet servers whose last flush failed because something has run out, as a full disk.',
  ),
  counter('writes_delayed_for_memtables', 'tabletserver.writesThatWaited', 'Writes that waited for room in memtables.'),
  counter(
    'writes_delayed_for_compactions',
    'tabletserver.writesThatWaitedForCompactions',
    'Writes that waited because a tablet had too many files.',
  ),
  gauge('in_memory_groups_used_bytes', 'inMemory.usedBytes', 'Bytes of in-memory locality groups.'),
  gauge('in_memory_groups_limit_bytes', 'inMemory.limitBytes', 'The most bytes of in-memory locality groups.'),
];

const CACHES: readonly MetricDefinition[] = [
  gauge('block_cache_used_bytes', 'blockCache.usedBytes', 'Bytes of blocks that are kept in memory.'),
  gauge('block_cache_limit_bytes', 'blockCache.limitBytes', 'The most bytes of blocks that are kept in memory.'),
  counter('block_cache_hits', 'blockCache.hits', 'Blocks that were asked for and found in memory.'),
  counter('block_cache_misses', 'blockCache.misses', 'Blocks that were asked for and not found in memory.'),
  counter('block_cache_evictions', 'blockCache.evictions', 'Blocks that made room for others.'),
  gauge('row_cache_used_bytes', 'rowCache.usedBytes', 'Bytes of single rows that are kept in memory.'),
  gauge('row_cache_limit_bytes', 'rowCache.limitBytes', 'The most bytes of single rows that are kept in memory.'),
  counter('row_cache_hits', 'rowCache.hits', 'Rows that were looked for in a file and found in memory.'),
  counter('row_cache_misses', 'rowCache.misses', 'Rows that were looked for in a file and not found in memory.'),
];

const FILES: readonly MetricDefinition[] = [
  counter('file_reads', 'sstable.reads', 'Reads of SSTables on the disk.'),
  counter('file_read_bytes', 'sstable.readBytes', 'Bytes of SSTables read from the disk.'),
  counter(
    'files_consulted',
    'tablet.filesRead',
    'SSTables that reads of tablets looked into, from memory or from the disk.',
  ),
  counter('bloom_filter_skips', 'sstable.bloomSkips', 'Files that a Bloom filter has spared a read.'),
  counter('bloom_filter_passes', 'sstable.bloomPasses', 'Files that a Bloom filter has let a read look into.'),
  counter(
    'bloom_filter_false_passes',
    'sstable.bloomFalsePasses',
    'Files that a Bloom filter has let a read look into, and that had nothing of the row.',
  ),
];

const COMPACTIONS: readonly MetricDefinition[] = [
  {
    name: 'edubba_compaction_duration_seconds',
    type: 'histogram',
    labels: ['kind'],
    factor: MS,
    series: [{ source: 'tablet.compactionMs' }],
    help: 'Time that a compaction took, by its kind: minor (a memtable becomes files), merging, or major.',
  },
  {
    name: 'edubba_compactions_total',
    type: 'counter',
    help: 'Compactions that were done, by their kind.',
    series: [
      { source: 'tablet.minorCompactions', labels: { kind: 'minor' } },
      { source: 'tablet.mergingCompactions', labels: { kind: 'merging' } },
      { source: 'tablet.majorCompactions', labels: { kind: 'major' } },
    ],
  },
  gauge('compactions_running', 'compactions.running', 'Merging and major compactions under way.'),
  gauge('compactions_waiting', 'compactions.waiting', 'Tablets that are to be looked at for a compaction.'),
  counter(
    'compactions_failed',
    'tabletserver.failedCompactions',
    'Merging and major compactions that have failed. They are tried again.',
  ),
  counter(
    'compaction_read_bytes',
    'tablet.compactionReadBytes',
    'Bytes of files that merging and major compactions have read.',
  ),
  {
    name: 'edubba_compaction_written_bytes_total',
    type: 'counter',
    help: 'Bytes of files that compactions have written.',
    series: [
      { source: 'tablet.minorCompactedBytes', labels: { kind: 'minor' } },
      { source: 'tablet.compactionWrittenBytes', labels: { kind: 'merging_or_major' } },
    ],
  },
];

const LOG: readonly MetricDefinition[] = [
  {
    name: 'edubba_log_append_duration_seconds',
    type: 'histogram',
    factor: MS,
    series: [{ source: 'log.appendMs' }],
    help: 'Time that an append to the commit log took, until it was durable. An append holds the writes of many calls.',
  },
  counter('log_appended_bytes', 'log.appendedBytes', 'Bytes of records appended to commit logs.'),
  gauge('log_size_bytes', 'log.sizeBytes', 'Bytes of commit logs on the disk.'),
  gauge('log_limit_bytes', 'log.limitBytes', 'Length of the commit logs that forces flushes.'),
  gauge('log_pending_bytes', 'log.pendingBytes', 'Bytes of records that are not durable yet.'),
];

const TABLETS: readonly MetricDefinition[] = [
  gauge('tables', 'master.tables', 'Tables that there are.'),
  gauge('tablets', 'tabletserver.tablets', 'Tablets that are served, those of METADATA among them.'),
  gauge('tablets_unserved', 'master.unservedTablets', 'Tablets that could not be served when it was last tried.'),
  counter('tablet_splits', 'tabletserver.splits', 'Tablets that were split.'),
  counter('tablet_merges', 'master.mergedTablets', 'Pairs of tablets that were merged.'),
  counter('tablet_moves', 'master.movedTablets', 'Tablets that were given to another tablet server.'),
  counter('files_swept', 'master.sweptFiles', 'Files that nothing referred to and that were deleted.'),
  counter('location_lookups', 'locator.roundTrips', 'Reads of METADATA to find a tablet.'),
  counter(
    'writes_with_time_ahead',
    'tabletserver.timesAheadOfTheClock',
    'Writes whose time was ahead of the clock of the machine, because the clock was set back.',
  ),
];

const PROCESS: readonly MetricDefinition[] = [
  gauge('ready', 'server.ready', '1 while the server serves; 0 while it starts or stops, or cannot serve.'),
  gauge('disk_free_bytes', 'disk.freeBytes', 'Bytes that the file system of the data directory has for this process.'),
  gauge('disk_size_bytes', 'disk.sizeBytes', 'Bytes of the file system of the data directory.'),
  {
    name: 'edubba_event_loop_delay_seconds',
    type: 'histogram',
    factor: MS,
    series: [{ source: 'eventLoop.delayMs' }],
    help: 'By how much timers came late, ten times a second on each thread that serves: what a call waits while something else runs.',
  },
  gauge('heap_used_bytes', 'heap.usedBytes', 'Bytes of the JavaScript heaps of all threads that serve.'),
  counter('uncaught_exceptions', 'process.uncaughtExceptions', 'Exceptions that nobody caught: faults of Edubba.'),
  counter('unhandled_rejections', 'process.unhandledRejections', 'Rejections that nobody handled: faults of Edubba.'),
  counter(
    'log_lines_dropped',
    'logLines.dropped',
    'Log lines that were dropped because standard error was read too slowly.',
  ),
  {
    name: 'edubba_build_info',
    type: 'gauge',
    labels: ['version', 'node'],
    series: [{ source: 'build.info' }],
    help: 'Always 1; the labels tell the version of Edubba and of Node.',
  },
];

/** By subject, in the order in which they are told. */
export const METRICS: Readonly<Record<string, readonly MetricDefinition[]>> = {
  Calls: CALLS,
  Connections: CONNECTIONS,
  'Memory and its limits': MEMORY,
  Caches: CACHES,
  'Files and Bloom filters': FILES,
  Compactions: COMPACTIONS,
  'The commit log': LOG,
  'Tables and tablets': TABLETS,
  'The server': PROCESS,
};

/** What prom-client tells of the process and of Node; a test compares it with what is there. `nodejs_*` are of the main thread, `process_*` of the process. */
export const PROCESS_METRICS: readonly Pick<MetricDefinition, 'name' | 'type' | 'help'>[] = [
  { name: 'process_cpu_user_seconds_total', type: 'counter', help: 'CPU time in user space.' },
  { name: 'process_cpu_system_seconds_total', type: 'counter', help: 'CPU time in the kernel.' },
  { name: 'process_cpu_seconds_total', type: 'counter', help: 'CPU time in all.' },
  { name: 'process_start_time_seconds', type: 'gauge', help: 'When the process began, seconds since 1970.' },
  { name: 'process_resident_memory_bytes', type: 'gauge', help: 'Resident memory.' },
  { name: 'process_virtual_memory_bytes', type: 'gauge', help: 'Virtual memory. Linux only.' },
  { name: 'process_heap_bytes', type: 'gauge', help: 'The size of the data segment. Linux only.' },
  { name: 'process_open_fds', type: 'gauge', help: 'Open descriptors. Linux only.' },
  { name: 'process_max_fds', type: 'gauge', help: 'The limit of open descriptors. Linux only.' },
  { name: 'nodejs_heap_size_total_bytes', type: 'gauge', help: 'Size of the JavaScript heap.' },
  { name: 'nodejs_heap_size_used_bytes', type: 'gauge', help: 'Used bytes of the JavaScript heap.' },
  {
    name: 'nodejs_external_memory_bytes',
    type: 'gauge',
    help: 'Memory outside the JavaScript heap that belongs to its objects.',
  },
  {
    name: 'nodejs_heap_space_size_total_bytes',
    type: 'gauge',
    help: 'Size of each space of the JavaScript heap, by space.',
  },
  {
    name: 'nodejs_heap_space_size_used_bytes',
    type: 'gauge',
    help: 'Used bytes of each space of the JavaScript heap, by space.',
  },
  {
    name: 'nodejs_heap_space_size_available_bytes',
    type: 'gauge',
    help: 'Free bytes of each space of the JavaScript heap, by space.',
  },
  { name: 'nodejs_version_info', type: 'gauge', help: 'Always 1; the labels tell the version of Node.' },
  {
    name: 'nodejs_gc_duration_seconds',
    type: 'histogram',
    help: 'Pauses of the garbage collector since the page was first read, by kind.',
  },
];
