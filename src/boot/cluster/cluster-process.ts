/**
 * A process of a cluster: the adapters to the engines that all its processes share (etcd as the lock service, a store
 * of files), and the transport between processes. Roles run over its `env`.
 */
import { resolve } from 'node:path';
import { Code, invalidArgument, toBigtableError } from '../../base/index.ts';
import { ByteBudget, type Env, type FileSystem, type Logger, type Metrics, type Workers } from '../../env/index.ts';
import { NetworkTransport } from '../../network/index.ts';
import {
  nativeCodecs,
  openEtcdLockService,
  openReadCache,
  type SharedStore,
  systemClock,
  systemRandom,
  ThreadWorkers,
  threadModule,
  warnOfNoThreads,
} from '../../platform/index.ts';
import { CALL_CODEC } from '../../protocol/index.ts';
import { COMPACTION_TASK, type CompactionJob } from '../../tablet/index.ts';
import { SORTED_DIRECTORY } from '../../tabletserver/index.ts';
import { addressText, isLoopback, parseAddress } from '../../wire/index.ts';
import { openFilesLimit } from '../open/descriptors.ts';
import { inlineWorkers } from '../open/open-database.ts';
import { type ClusterAccess, readAccess } from './cluster-access.ts';
import { claimStore } from './cluster-identity.ts';
import type { OpenParts } from './open-parts.ts';
import { backupStoreOf } from '../store/backup-store.ts';
import { openStore } from '../store/store.ts';
import { isBucket } from '../store/store-address.ts';
import type { StoreJob } from './store-compaction-worker.ts';

export interface ClusterOptions extends ClusterAccess {
  /** The store: a directory that all machines share, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME. */
  readonly files: string;
  /** A cache of the store's files on the local disk. Default: none. */
  readonly readCache?: { readonly directory: string; readonly budgetBytes: number } | undefined;
  /** HOST:PORT at which this process takes calls of the others; port 0 chooses a free one. */
  readonly clusterAddress: string;
  /** HOST:PORT by which the others reach it. Default: that of `clusterAddress`. */
  readonly clusterAdvertise?: string | undefined;
  /** Bytes of calls of other processes that are under way, and of answers to them. */
  readonly requestBytes: number;
  /** 0: it compacts nothing. */
  readonly compactionsAtOnce: number;
  readonly metrics: Metrics;
  /** As the setting of a database. */
  readonly backupStore: string | undefined;
}

export type ClusterRole = 'master' | 'tabletserver';

export interface ClusterProcess {
  readonly env: Env;
  /** The address of the role in the lock service: HOST:PORT/ROLE. */
  readonly address: string;
  /** HOST:PORT at which it takes calls of other processes. */
  readonly listening: string;
}

/** Calls of other processes that are under way get this long to end. */
const GRACE_MS = 2000;

/**
 * Opens the engines and listens. INVALID_ARGUMENT for wrong addresses, secrets and certificates; otherwise as the
 * engines fail, with their addresses in the message.
 */
export async function openClusterProcess(
  options: ClusterOptions,
  role: ClusterRole,
  parts: OpenParts,
): Promise<ClusterProcess> {
  const { logger, metrics, requestBytes, compactionsAtOnce, files } = options;
  const own = ownAddresses(options);
  const { etcd, secret, tls } = await readAccess(options);
  if (tls === undefined && !isLoopback(own.host))
    logger.warn('calls between processes of the cluster are not encrypted', { address: options.clusterAddress });
  const codecs = nativeCodecs();
  const maxOpenFiles = openFilesLimit(1, Math.max(1, compactionsAtOnce));
  const lockService = parts.add(await openEtcdLockService(etcd));
  const store = parts.add(await openStore(files, { maxOpenFiles }));
  await claimStore(lockService, store.identity, { lock: options.lock, files });
  const backupStore = backupStoreOf(options.backupStore, {
    ownIdentity: store.identity,
    ownDirectory: isBucket(files) ? undefined : files,
  });
  if (backupStore !== undefined) parts.add(backupStore);
  const workers = parts.add(storeWorkers({ store, address: files, maxOpenFiles, compactionsAtOnce, logger, codecs }));
  const fileSystem = await readThroughCache(options, store, parts);
  const peersBudget = new ByteBudget(requestBytes);
  metrics.gauges({ 'requests.peersUsedBytes': () => peersBudget.usedBytes });
  const machine = { clock: systemClock, random: systemRandom, logger, metrics };
  const transport = new NetworkTransport({
    env: { ...machine, requestBudget: peersBudget },
    codec: CALL_CODEC,
    identity: { name: own.nameOf(own.port), cluster: store.identity, role },
    secret,
    tls,
  });
  parts.add({ close: () => transport.close(GRACE_MS) });
  const listening = own.nameOf(await transport.listen(own.host, own.port));
  const requestBudget = new ByteBudget(requestBytes);
  const adapters = { fileSystem, lockService, transport, workers, backupStore: backupStore?.open };
  const env = { ...machine, ...adapters, codecs, requestBudget };
  return { env, address: `${listening}/${role}`, listening };
}

interface OwnAddresses {
  readonly host: string;
  readonly port: number;
  /** HOST:PORT by which others reach it, once the port is known. */
  nameOf(port: number): string;
}

function ownAddresses({
  clusterAddress,
  clusterAdvertise,
}: Pick<ClusterOptions, 'clusterAddress' | 'clusterAdvertise'>): OwnAddresses {
  const own = mustParse(clusterAddress, 'cluster address');
  const advertised = clusterAdvertise === undefined ? own : mustParse(clusterAdvertise, 'advertised cluster address');
  if (WILDCARDS.has(advertised.host))
    throw invalidArgument(
      `cluster address ${clusterAddress}: other processes cannot call ${advertised.host}; say by which HOST:PORT they reach this one (--cluster-advertise)`,
    );
  return {
    ...own,
    nameOf: (port) => addressText(advertised.host, advertised.port === 0 ? port : advertised.port),
  };
}

const WILDCARDS = new Set(['0.0.0.0', '::', '']);

function mustParse(address: string, what: string): { readonly host: string; readonly port: number } {
  const parsed = parseAddress(address);
  if (parsed === undefined) throw invalidArgument(`invalid ${what} ${JSON.stringify(address)}: expected HOST:PORT`);
  return parsed;
}

/**
 * The store's files, read through the cache. A disk that fails, or is full, costs only the cache. FAILED_PRECONDITION
 * where another process has its directory, or it holds something else.
 */
async function readThroughCache(
  { readCache, logger, metrics }: ClusterOptions,
  { fileSystem, identity }: SharedStore,
  openParts: OpenParts,
): Promise<FileSystem> {
  if (readCache === undefined) return fileSystem;
  const { checksum } = nativeCodecs();
  const { directory, budgetBytes } = readCache;
  const passedPrefix = SORTED_DIRECTORY;
  const parts = { fileSystem, identity, budgetBytes, passedPrefix, checksum, clock: systemClock, logger, metrics };
  try {
    return openParts.add(await openReadCache(directory, parts)).fileSystem;
  } catch (thrown) {
    const { code, message } = toBigtableError(thrown);
    if (code === Code.FAILED_PRECONDITION || code === Code.INVALID_ARGUMENT) throw thrown;
    logger.error('there is no read cache', { directory, error: message });
    return fileSystem;
  }
}

interface StoreWorkersParts {
  readonly store: SharedStore;
  readonly address: string;
  readonly maxOpenFiles: number;
  readonly compactionsAtOnce: number;
  readonly logger: Logger;
  readonly codecs: Env['codecs'];
}

/** Compactions in threads, which open the store by its address; on the event loop if the threads' code is missing. */
function storeWorkers({
  store: { fileSystem },
  address,
  maxOpenFiles,
  compactionsAtOnce,
  logger,
  codecs,
}: StoreWorkersParts): Workers {
  const module = threadModule('./store-compaction-worker.ts', import.meta.url);
  if (module === undefined) warnOfNoThreads();
  if (module === undefined || compactionsAtOnce === 0) return inlineWorkers({ fileSystem, codecs, clock: systemClock });
  const threads = new ThreadWorkers({
    clock: systemClock,
    logger,
    size: compactionsAtOnce,
    tasks: { [COMPACTION_TASK]: module },
  });
  const store = isBucket(address) ? address : resolve(address);
  return {
    run: (task, job) => threads.run(task, { store, maxOpenFiles, job: job as CompactionJob } satisfies StoreJob),
    close: () => threads.close(),
  };
}
