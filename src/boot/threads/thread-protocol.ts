/**
 * The protocol of the main thread and the threads of tablet servers: what a thread has at its start, the calls by which
 * the main thread directs it, and the notices that it sends on its own.
 */
import type { MessagePort } from 'node:worker_threads';
import type { DatabaseSettings } from '../settings/settings.ts';
import type { LogNotice } from './thread-log.ts';

/** A port to another thread, and what is served there. */
export interface ThreadRoute {
  readonly addresses: readonly string[];
  readonly port: MessagePort;
}

export interface ThreadStart {
  readonly place: number;
  readonly tabletServers: number;
  /** Absolute. */
  readonly directory: string;
  readonly settings: DatabaseSettings;
  /** Address of the host of the lock service that is this thread's. */
  readonly lockService: string;
  readonly leases: Int32Array;
  /** Counts of its log lines. */
  readonly logCounts: Int32Array;
  /** To the main thread first, then to the threads of the other tablet servers. */
  readonly routes: readonly ThreadRoute[];
}

/** Where a thread answers calls of `ThreadMethod`. */
export function threadAddress(place: number): string {
  return `thread-${place}`;
}

export type ThreadMethod = 'start' | 'listen' | 'stopListening' | 'releaseTablets' | 'close' | 'counters' | 'report';

/** A message that a thread sends to the main thread on its own. */
export type ThreadNotice =
  | LogNotice
  /** Its tablet server has ended itself: the thread must end. */
  | { readonly kind: 'ended'; readonly reason: string };
