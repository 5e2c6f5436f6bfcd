/**
 * All metrics of a server: the public name, by the conventions of Prometheus (base units, counters end in `_total`),
 * the meaning, and the name by which `env`'s Metrics counts it. docs/METRICS.md is made from this table.
 *
 * Invariant: values of labels come from small fixed sets (methods of the API, codes, parts), never from callers. No
 * table, row or principal is one.
 */

export interface MetricSeries {
  /** The name by which it is counted. The values of the metric's labels follow it. */
  readonly source: string;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface MetricDefinition {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** Names of the labels whose values follow the source's name, in their order. */
  readonly labels?: readonly string[];
  readonly series: readonly MetricSeries[];
  /** The factor of values: 0.001 for durations, which are counted in milliseconds. */
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
    help: 'Calls that have ended, by method and gRPC code. Unknown methods share the value unknown.',
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
    'Calls forwarded from one thread to another, if tablet servers have threads of their own.',
  ),
];

const CONNECTIONS: readonly MetricDefinition[] = [
  gauge('connections', 'wire.connections', 'Open connections, handshakes included.'),
  gauge('connections_limit', 'wire.maxConnections', 'The most concurrent connections.'),
  counter('connections_accepted', 'wire.acceptedConnections', 'Accepted connections.'),
  counter(
    'connections_refused',
    'wire.refusedConnections',
    'Connections that were refused because there were too many.',
  ),
  counter(
    'connections_replaced',
    'wire.replacedConnections',
    'Idle connections that were closed in favour of new ones.',
  ),
  counter(
    'handshakes_timed_out',
    'wire.lateHandshakes',
    'Connections that were closed because their handshake took too long.',
  ),
];

const MEMORY: readonly MetricDefinition[] = [
  {
    name: 'edubba_request_budget_used_bytes',
    type: 'gauge',
    help: 'Bytes of requests in flight and unsent responses, by part of the budget.',
    series: BUDGET_PARTS.map((part) => ({ source: `requests.usedBytes.${part}`, labels: { part } })),
  },
  gauge(
    'request_budget_limit_bytes',
    'requests.limitBytes',
    'The most bytes of requests in flight and unsent responses, all parts together.',
  ),
  gauge(
    'request_budget_peers_used_bytes',
    'requests.peersUsedBytes',
    'Bytes of calls that other threads have passed on, in a budget of their own.',
  ),
  gauge('requests_waiting', 'requests.waiting', 'Requests that wait for space in the budget.'),
  gauge('memtables_used_bytes', 'memtables.usedBytes', 'Bytes of all memtables: writes that are not in files yet.'),
  gauge(
    'memtables_limit_bytes',
    'memtables.limitBytes',
    'The most bytes of all memtables. Writes wait at it; flushes begin at half of it.',
  ),
  gauge(
    'memtables_flush_failing',
    'memtables.flushFailing',
    'Tablet servers whose last flush failed, for any reason, and is to be tried again.',
  ),
  gauge(
    'memtables_refusing',
    'memtables.refusing',
    'Tablet servers whose last flush failed for lack of a resource, such as disk space.',
  ),
  counter(
    'writes_delayed_for_memtables',
    'tabletserver.writesThatWaited',
    'Writes that waited for space in memtables.',
  ),
  counter(
    'writes_delayed_for_compactions',
    'tabletserver.writesThatWaitedForCompactions',
    'Writes that waited because a tablet had too many files.',
  ),
  gauge('in_memory_groups_used_bytes', 'inMemory.usedBytes', 'Bytes of in-memory locality groups.'),
  gauge('in_memory_groups_limit_bytes', 'inMemory.limitBytes', 'The most bytes of in-memory locality groups.'),
  gauge(
    'in_memory_groups_unfit_bytes',
    'inMemory.unfitBytes',
    'Bytes of files of in-memory locality groups that do not fit, and are read through the block cache.',
  ),
];

const CACHES: readonly MetricDefinition[] = [
  gauge('block_cache_used_bytes', 'blockCache.usedBytes', 'Bytes of cached blocks.'),
  gauge('block_cache_limit_bytes', 'blockCache.limitBytes', 'The most bytes of cached blocks.'),
  counter('block_cache_hits', 'blockCache.hits', 'Requested blocks that were in the cache.'),
  counter('block_cache_misses', 'blockCache.misses', 'Requested blocks that were not in the cache.'),
  counter('block_cache_evictions', 'blockCache.evictions', 'Blocks that were evicted from the cache.'),
  gauge('row_cache_used_bytes', 'rowCache.usedBytes', 'Bytes of cached single rows.'),
  gauge('row_cache_limit_bytes', 'rowCache.limitBytes', 'The most bytes of cached single rows.'),
  counter('row_cache_hits', 'rowCache.hits', 'Look-ups of a row in a file that the cache answered.'),
  counter('row_cache_misses', 'rowCache.misses', 'Look-ups of a row in a file that the cache did not answer.'),
  gauge('indexes_used_bytes', 'indexes.usedBytes', 'Bytes of indexes and Bloom filters of files in memory.'),
  gauge('indexes_limit_bytes', 'indexes.limitBytes', 'The most bytes of indexes and Bloom filters in memory.'),
  counter('index_loads', 'sstable.indexLoads', 'Indexes that were read again, after they had been evicted.'),
  counter('index_evictions', 'sstable.indexEvictions', 'Indexes that were evicted for others.'),
  gauge('read_cache_used_bytes', 'readCache.usedBytes', 'Bytes of the local disk in use by the cache of a store.'),
  gauge('read_cache_limit_bytes', 'readCache.limitBytes', 'The most bytes of the local disk for the cache of a store.'),
  counter('read_cache_hits', 'readCache.hits', 'Reads of a store that the local disk answered whole.'),
  counter('read_cache_misses', 'readCache.misses', 'Reads of a store that it had to answer, in part at least.'),
  counter('read_cache_hit_bytes', 'readCache.hitBytes', 'Bytes of reads that the local disk answered whole.'),
  counter('read_cache_fetched_bytes', 'readCache.fetchedBytes', 'Bytes that were fetched from the store.'),
  counter('read_cache_evictions', 'readCache.evictions', 'Chunks of files that were evicted for others.'),
  counter('read_cache_damaged', 'readCache.damaged', 'Chunks whose bytes on the local disk were not those written.'),
  counter('read_cache_disk_errors', 'readCache.diskErrors', 'Errors of the local disk, a lack of space included.'),
];

const FILES: readonly MetricDefinition[] = [
  counter('file_reads', 'sstable.reads', 'Reads of SSTables from the disk.'),
  counter('file_read_bytes', 'sstable.readBytes', 'Bytes of SSTables read from the disk.'),
  counter(
    'files_consulted',
    'tablet.filesRead',
    'SSTables that reads of tablets consulted, from memory or from the disk.',
  ),
  counter('bloom_filter_skips', 'sstable.bloomSkips', 'Files that reads skipped because of a Bloom filter.'),
  counter('bloom_filter_passes', 'sstable.bloomPasses', 'Files that a Bloom filter let a read consult.'),
  counter(
    'bloom_filter_false_passes',
    'sstable.bloomFalsePasses',
    'Files that a Bloom filter let a read consult, and that had no entry of the row.',
  ),
];

const COMPACTIONS: readonly MetricDefinition[] = [
  {
    name: 'edubba_compaction_duration_seconds',
    type: 'histogram',
    labels: ['kind'],
    factor: MS,
    series: [{ source: 'tablet.compactionMs' }],
    help: 'Duration of a compaction, by kind: minor (a memtable becomes files), merging, or major.',
  },
  {
    name: 'edubba_compactions_total',
    type: 'counter',
    help: 'Completed compactions, by kind.',
    series: [
      { source: 'tablet.minorCompactions', labels: { kind: 'minor' } },
      { source: 'tablet.mergingCompactions', labels: { kind: 'merging' } },
      { source: 'tablet.majorCompactions', labels: { kind: 'major' } },
    ],
  },
  counter(
    'merges_for_reads',
    'tablet.mergesForReads',
    'Merging compactions of files that reads found over one another too often.',
  ),
  gauge('compactions_running', 'compactions.running', 'Compactions that are running, without those that free memory.'),
  gauge('compactions_waiting', 'compactions.waiting', 'Tablets that wait for a check whether they need a compaction.'),
  counter(
    'compactions_failed',
    'tabletserver.failedCompactions',
    'Merging and major compactions that have failed. They are retried.',
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
    help: 'Time until an append to the commit log was durable. An append holds the writes of many calls.',
  },
  counter('log_appended_bytes', 'log.appendedBytes', 'Bytes of records appended to commit logs.'),
  counter('log_sorted_bytes', 'log.sortedBytes', 'Bytes of logs of dead servers that were sorted for recoveries.'),
  gauge(
    'log_size_bytes',
    'log.sizeBytes',
    'Bytes of commit logs that a replay would read. On shared stores short appends count as more than they have.',
  ),
  gauge('log_limit_bytes', 'log.limitBytes', 'Length of the commit logs that forces flushes.'),
  gauge('log_pending_bytes', 'log.pendingBytes', 'Bytes of records that are not durable yet.'),
];

const TABLETS: readonly MetricDefinition[] = [
  gauge('is_master', 'master.hasLock', 'Masters of a cluster: 1 with the master lock, 0 while it stands by.'),
  gauge('tables', 'master.tables', 'Existing tables.'),
  gauge('deleted_tables_kept', 'master.keptTables', 'Deleted tables that are kept: their files take space.'),
  gauge('tablets', 'tabletserver.tablets', 'Served tablets, including those of METADATA.'),
  gauge('tablets_unserved', 'master.unservedTablets', 'Tablets that could not be served at the last attempt.'),
  counter('tablet_splits', 'tabletserver.splits', 'Tablets that were split.'),
  counter('tablet_merges', 'master.mergedTablets', 'Pairs of tablets that were merged.'),
  counter('tablet_moves', 'master.movedTablets', 'Tablets that were moved to another tablet server.'),
  counter('files_swept', 'master.sweptFiles', 'Unreferenced files that were deleted.'),
  counter('location_lookups', 'locator.roundTrips', 'Reads of METADATA to find a tablet.'),
  counter(
    'writes_with_time_ahead',
    'tabletserver.timesAheadOfTheClock',
    "Writes with a time ahead of the machine's clock, because the clock was set back.",
  ),
];

const PROCESS: readonly MetricDefinition[] = [
  gauge('ready', 'server.ready', '1 while the server serves; 0 while it starts or stops, or cannot serve.'),
  gauge(
    'disk_free_bytes',
    'disk.freeBytes',
    'Bytes of the file system of the data directory that this process may use.',
  ),
  gauge('disk_size_bytes', 'disk.sizeBytes', 'Bytes of the file system of the data directory.'),
  {
    name: 'edubba_event_loop_delay_seconds',
    type: 'histogram',
    factor: MS,
    series: [{ source: 'eventLoop.delayMs' }],
    help: 'Delay of timers, measured ten times a second on each serving thread: the time that a call waits for other work.',
  },
  gauge('heap_used_bytes', 'heap.usedBytes', 'Bytes of the JavaScript heaps of all serving threads.'),
  counter('uncaught_exceptions', 'process.uncaughtExceptions', 'Uncaught exceptions: faults of Edubba.'),
  counter('unhandled_rejections', 'process.unhandledRejections', 'Unhandled rejections: faults of Edubba.'),
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
    help: 'Always 1; the labels have the versions of Edubba and Node.',
  },
];

/** The metrics by subject, in the order of the page. */
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

/**
 * The metrics of prom-client; a test compares them with its output. `nodejs_*` are of the main thread, `process_*` of
 * the process.
 */
export const PROCESS_METRICS: readonly Pick<MetricDefinition, 'name' | 'type' | 'help'>[] = [
  { name: 'process_cpu_user_seconds_total', type: 'counter', help: 'CPU time in user space.' },
  { name: 'process_cpu_system_seconds_total', type: 'counter', help: 'CPU time in the kernel.' },
  { name: 'process_cpu_seconds_total', type: 'counter', help: 'CPU time in user space and kernel.' },
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
  { name: 'nodejs_version_info', type: 'gauge', help: 'Always 1; the labels have the version of Node.' },
  {
    name: 'nodejs_gc_duration_seconds',
    type: 'histogram',
    help: 'Pauses of the garbage collector since the first request for the page, by kind.',
  },
];
