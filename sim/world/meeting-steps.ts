/** What meetings are made of: tablets to choose from, and calls whose outcome is of no interest. */
import { BigtableError, successor } from '../../src/base/index.ts';
import {
  isMetadataTablet,
  METADATA_TABLE_ID,
  type MetadataCommit,
  type MetadataKey,
} from '../../src/metadata/index.ts';
import { rangeContains } from '../../src/model/index.ts';
import { callServer, type TabletServerCalls } from '../../src/protocol/index.ts';
import type { TabletServer } from '../../src/tabletserver/index.ts';
import type { Cluster } from './cluster.ts';
import { worldContext } from './world-context.ts';

const TIMEOUT_MS = 5000;
const POLL_MS = 20;

export interface TabletAt {
  readonly machine: string;
  readonly served: ServedTablet;
}

export type ServedTablet = ReturnType<TabletServer['tablets']['all']> extends Iterable<infer T> ? T : never;
export type Message<M extends keyof TabletServerCalls> = TabletServerCalls[M]['message'];

export function flushes(message: unknown): boolean {
  const { tablets, flush } = message as Message<'unload'>;
  return flush && tablets.length > 0;
}

export function splitsUsersTablet({ event, rows }: MetadataCommit): boolean {
  return event.kind === 'split' && rows.length > 1 && rows.every(({ key }) => !isMetadataTablet(key));
}

/** A commit of files that were written just before. */
export function namesFiles({ event, rows }: MetadataCommit): boolean {
  return event.kind === 'compacted' && rows.every(({ key }) => !isMetadataTablet(key));
}

export function readsMetadata(message: unknown): boolean {
  return (message as { readonly tableId: string }).tableId === METADATA_TABLE_ID;
}

export function tabletsOfUsers({ servers }: Cluster): TabletAt[] {
  const all = servers.flatMap(({ name, server }) =>
    [...(server?.tablets.all() ?? [])].map((served) => ({ machine: name, served })),
  );
  return all.filter(({ served }) => served.tableId !== METADATA_TABLE_ID);
}

export function someTablet(cluster: Cluster): TabletAt | undefined {
  const all = tabletsOfUsers(cluster);
  return all[Math.floor(cluster.scheduler.random.float() * all.length)];
}

/** A row at which the tablet can be split; undefined where there is none. */
export function rowInside({ tablet, range }: ServedTablet): string | undefined {
  const row = tablet.middleRow() ?? successor(range.start);
  return rangeContains(range, row) ? row : undefined;
}

export function servedOf(cluster: Cluster, machine: string, key: MetadataKey): ServedTablet | undefined {
  const served = cluster.seatOf(machine)?.server?.tablets.all() ?? [];
  return [...served].find((tablet) => tablet.key === key);
}

/** Has the master merge two tablets, which are unloaded for that. */
export function mergeSome(cluster: Cluster): void {
  const served = someTablet(cluster)?.served;
  if (served?.range.end !== undefined) void merge(cluster, served, served.range.end);
}

/** Has the master merge the tablets of that one's table that meet at the row. */
export async function merge(cluster: Cluster, { host, tableId }: ServedTablet, row: string): Promise<void> {
  const { client, env } = cluster.clients[0]!;
  const { name } = host.schema(tableId);
  await client.mergeTablets(worldContext(env, TIMEOUT_MS), name, row).catch((thrown: unknown) => {
    refused(cluster, 'a merge was refused', { table: name, row }, thrown);
  });
}

export async function split(cluster: Cluster, machine: string, tableId: string, row: string): Promise<void> {
  await call(cluster, machine, 'split', { tableId, row, near: 'row' });
}

export async function compact(cluster: Cluster, { machine, served }: TabletAt): Promise<void> {
  const { tableId, range } = served;
  await call(cluster, machine, 'compact', { tableId, range });
}

export async function call<M extends 'split' | 'compact' | 'flush'>(
  cluster: Cluster,
  machine: string,
  method: M,
  message: Message<M>,
): Promise<void> {
  const { env } = cluster.clients[0]!;
  await callServer(env.transport, machine, method, message, worldContext(env, TIMEOUT_MS)).catch((thrown: unknown) => {
    refused(cluster, `a call was refused: ${method}`, message, thrown);
  });
}

/** Resolves with what is found first, or with undefined after that time. */
export function found<T>(
  { scheduler }: Cluster,
  find: () => T | undefined,
  patienceMs: number,
): Promise<T | undefined> {
  const endMs = scheduler.nowMs + patienceMs;
  return new Promise((resolve) => {
    const look = (): void => {
      const one = find();
      if (one !== undefined || scheduler.nowMs >= endMs) resolve(one);
      else scheduler.after(POLL_MS, undefined, 'look', look);
    };
    look();
  });
}

/** The judge of logs sees it, too. */
function refused(cluster: Cluster, what: string, fields: object, thrown: unknown): void {
  if (!(thrown instanceof BigtableError)) throw thrown;
  cluster.onLog?.('world', 'info', what, { ...fields, error: thrown.message });
}
