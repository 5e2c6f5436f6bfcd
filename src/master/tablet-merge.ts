/**
 * Merges two neighbouring tablets, on demand (paper section 5.2; docs/decisions/0015-splits-and-merges.md): their
 * servers flush and release them, their rows are released, and one commit replaces the two rows by one, which is then
 * assigned like any other.
 *
 * Invariant: wherever it is cut short, METADATA's rows partition the table, and the assignment queue finishes each of
 * their tablets: released by its server, released in its row, or merged and not assigned yet. No step is to be undone.
 */
import { assert, BigtableError, type ByteString, Code, quote, successor } from '../base/index.ts';
import { type Env, fromPlainError, type RequestContext } from '../env/index.ts';
import type { MetadataClient } from '../locator/index.ts';
import {
  commitOfMerge,
  commitOfRow,
  keyOfRow,
  keysOfTable,
  type MetadataCommit,
  type MetadataKey,
  metadataKey,
  type MetadataRow,
  releasedAt,
  ROOT_RANGE,
} from '../metadata/index.ts';
import { rangeContains, type TableSchema } from '../model/index.ts';
import type { AssignmentQueue } from './assignment-queue.ts';
import type { LiveServer } from './live-server.ts';
import type { Servers } from './servers.ts';

export interface MergeParts {
  readonly env: Env;
  readonly metadata: MetadataClient;
  readonly servers: Servers;
  readonly queue: AssignmentQueue;
}

/**
 * Merges the tablet of the table that ends at `row` with the one that begins there. Meanwhile nothing else is done
 * about the two, and the merge ends if the server of one of them dies.
 */
export async function mergeTablets(
  parts: MergeParts,
  schema: TableSchema,
  row: ByteString,
  context: RequestContext,
): Promise<void> {
  const { metadata, queue } = parts;
  const keys = (await neighbours(metadata, schema, row, context)).map(keyOfRow);
  for (let next = keys.find((key) => queue.has(key)); next !== undefined; next = keys.find((key) => queue.has(key))) {
    const failure = await queue.settled(next);
    if (failure) throw failure;
  }
  const hold = queue.hold(keys);
  const merged = await mergeHeld(parts, schema, row, keys, { ...context, signal: hold.signal }).finally(() => {
    hold.release();
    // one that was released is to be served again
    for (const key of keys) void queue.look(key);
  });
  assert(keyOfRow(merged) === keys[1], 'a merge leaves the row of the upper tablet');
  const failure = await queue.look(keyOfRow(merged), merged);
  if (failure) throw failure;
}

/** `keys`: those of the two, which are held. Returns the merged tablet's row, which names no server. */
async function mergeHeld(
  parts: MergeParts,
  { id, name }: TableSchema,
  row: ByteString,
  keys: readonly MetadataKey[],
  context: RequestContext,
): Promise<MetadataRow> {
  const { env, metadata, servers } = parts;
  const [low, high] = await neighbours(metadata, { id, name }, row, context);
  // the upper one was split before it was held
  if (keyOfRow(high) !== keys[1]) throw changed();
  await checkTogether(metadata, [low, high], context);
  const owned = [low, high].map((tablet) => ({ tablet, owner: ownerOf(parts, tablet) }));
  // most is written while both are still served
  for (const { tablet, owner } of owned)
    await servers.caller.callUntilDone(owner, 'flush', { keys: [keyOfRow(tablet)] }, context);
  await Promise.all(owned.map(({ tablet, owner }) => release(parts, tablet, owner, context)));
  const [lowNow, highNow] = await neighbours(metadata, { id, name }, row, context);
  // one of them may have been split before its server released it: then the part at the row is another tablet, which is
  // served
  for (const { server, logs } of [lowNow, highNow]) if (server !== undefined || logs.length > 0) throw changed();
  const commit = commitOfMerge(env.random.uniqueName(), env.clock.nowMicros(), lowNow, highNow);
  await servers.checkMastership();
  await commitAll(metadata, commit, context);
  env.metrics.add('master.mergedTablets');
  const merged = commit.rows[1]?.row;
  assert(merged !== undefined && merged.server === undefined, 'a merge leaves one row, which names no server');
  return merged;
}

async function neighbours(
  metadata: MetadataClient,
  { id, name }: Pick<TableSchema, 'id' | 'name'>,
  row: ByteString,
  context: RequestContext,
): Promise<[MetadataRow, MetadataRow]> {
  const key = metadataKey(id, row);
  const low = await metadata.readRow(key, context);
  if (low === undefined)
    throw new BigtableError(Code.FAILED_PRECONDITION, `no two tablets of table ${name} meet at row ${quote(row)}`);
  for await (const [high] of metadata.scan({ start: successor(key), end: keysOfTable(id).end }, context)) {
    assert(high !== undefined, 'a scan of METADATA yields rows');
    return [low, high];
  }
  // the table is being deleted
  throw changed();
}

/** Both rows lie in one tablet of METADATA: only there one commit changes both. */
async function checkTogether(
  metadata: MetadataClient,
  rows: readonly MetadataRow[],
  context: RequestContext,
): Promise<void> {
  const keys = rows.map(keyOfRow);
  for await (const tablets of metadata.scan(ROOT_RANGE, context)) {
    if (tablets.some(({ range }) => keys.every((key) => rangeContains(range, key)))) return;
  }
  throw new BigtableError(
    Code.FAILED_PRECONDITION,
    'the rows of the two tablets lie in different tablets of METADATA: those are not merged',
  );
}

/** Leaves the tablet without a server, and with no record to be replayed. */
async function release(
  { env, metadata, servers }: MergeParts,
  tablet: MetadataRow,
  owner: LiveServer,
  context: RequestContext,
): Promise<void> {
  const { epoch } = tablet;
  const key = keyOfRow(tablet);
  const unload = { tablets: [{ key, epoch }], flush: true };
  const [error] = await servers.caller.callUntilDone(owner, 'unload', unload, context);
  owner.drop(key);
  if (error !== undefined) throw fromPlainError(error);
  const now = await metadata.readRow(key, context);
  if (now?.epoch !== epoch || now.logs.length > 0) throw changed();
  const event = { kind: 'released', atMicros: env.clock.nowMicros() } as const;
  await servers.checkMastership();
  await commitAll(
    metadata,
    commitOfRow(env.random.uniqueName(), event, key, now, releasedAt(now, event.atMicros)),
    context,
  );
}

function ownerOf({ servers }: MergeParts, { server }: MetadataRow): LiveServer {
  const owner = server && servers.get(server.name);
  if (owner === undefined) throw new BigtableError(Code.UNAVAILABLE, 'the tablet is being assigned: try again');
  return owner;
}

async function commitAll(metadata: MetadataClient, commit: MetadataCommit, context: RequestContext): Promise<void> {
  const [outcome] = await metadata.commit([commit], context);
  if (outcome?.kind === 'refused') throw changed();
}

function changed(): BigtableError {
  return new BigtableError(Code.ABORTED, 'a tablet was changed while it was to be merged: try again');
}
