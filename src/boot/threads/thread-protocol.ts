/**
 * The protocol of the main thread and the threads of tablet servers: the data of a thread's start, the calls by which
 * the main thread directs it, and the notices that it sends on its own.
 */
import type { MessagePort } from 'node:worker_threads';
import type { DatabaseSettings } from '../settings/settings.ts';
import type { LogNotice } from './thread-log.ts';

/** A port to another thread, and the addresses served there. */
export interface ThreadRoute {
  readonly addresses: readonly string[];
  readonly port: MessagePort;
}

export interface ThreadStart {
  readonly index: number;
  readonly tabletServers: number;
  /** Absolute. */
  readonly directory: string;
  readonly settings: DatabaseSettings;
  /** Address of the lock service's handler for this thread. */
  readonly lockService: string;
  readonly leases: Int32Array;
  /** Counts of its log lines. */
  readonly logCounts: Int32Array;
  /** Numbers of connections of all threads. */
  readonly connections: Int32Array;
  /** To the main thread first, then to the threads of the other tablet servers. */
  readonly routes: readonly ThreadRoute[];
}

/** The address at which a thread answers calls of `ThreadMethod`. */
export function threadAddress(index: number): string {
  return `thread-${index}`;
}

export type ThreadMethod = 'start' | 'listen' | 'stopListening' | 'releaseTablets' | 'close' | 'counters' | 'report';

/** A message that a thread sends to the main thread on its own. */
export type ThreadNotice =
  | LogNotice
  /** Its tablet server has ended itself: the thread must end. */
  | { readonly kind: 'ended'; readonly reason: string };
