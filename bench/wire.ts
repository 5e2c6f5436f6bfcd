/**
 * The memory that clients cost a server while they do nothing, or next to nothing: idle connections, and readers of a
 * large scan that are far too slow. The server is a process of its own (the built command line); the clients are bare
 * sockets in this one, which is not measured.
 *
 *   npm run bench -- wire [--connections=10000] [--readers=100] [--mib=1024] [--secs=30] [--tablet-servers=N]
 *
 * Ends with status 1 where a figure is not what it should be.
 */
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, RowMutation } from '../src/embedded/index.ts';
import { type ServerProcess, startServer } from './serving/server-process.ts';
import { openConnection, readRowsOf } from './wire/peer.ts';

const options = new Map(
  process.argv.slice(2).map((word) => [word.replace(/^--|=.*$/g, ''), word.replace(/^[^=]*=/, '')] as const),
);
const CONNECTIONS = Number(options.get('connections') ?? 10_000);
const READERS = Number(options.get('readers') ?? 100);
const TABLE_MIB = Number(options.get('mib') ?? 1024);
const SECONDS = Number(options.get('secs') ?? 30);
const MIB = 1024 * 1024;
const KIB = 1024;
const VALUE_BYTES = 64 * KIB;
const AT_ONCE = 200;
const SETTLE_MS = 2000;
const MAX_IDLE_MIB = 200;
const MAX_READER_MIB = 4;
const TABLE = 'projects/local/instances/local/tables/slow';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
let failed = false;

function tell(what: string, mib: number, maxMib: number): void {
  const right = mib < maxMib;
  failed ||= !right;
  console.log(`${what}: ${mib.toFixed(2)} MiB (less than ${maxMib}: ${right ? 'yes' : 'NO'})`);
}

function residentMib(server: ChildProcess): number {
  const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
  return (Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) * KIB) / MIB;
}

async function idleConnections(server: ChildProcess, port: number): Promise<void> {
  const sockets: Socket[] = [];
  for (let i = 0; i < AT_ONCE; i++) sockets.push(await openConnection(port, {}));
  await pause(SETTLE_MS);
  const before = residentMib(server);
  while (sockets.length < CONNECTIONS + AT_ONCE) {
    const count = Math.min(AT_ONCE, CONNECTIONS + AT_ONCE - sockets.length);
    sockets.push(...(await Promise.all(Array.from({ length: count }, () => openConnection(port, {})))));
  }
  await pause(SETTLE_MS);
  const lost = sockets.filter((socket) => socket.destroyed).length;
  if (lost > 0) throw new Error(`${lost} of ${sockets.length} connections were ended: is \`ulimit -n\` large enough?`);
  tell(`${CONNECTIONS} idle connections`, residentMib(server) - before, MAX_IDLE_MIB);
  for (const socket of sockets) socket.destroy();
}

/**
 * Readers that allow the server to send without end, and take 1 KiB a second. What the caches take on the way counts as
 * theirs.
 */
async function slowReaders(server: ChildProcess, port: number): Promise<void> {
  const before = residentMib(server);
  let taken = 0;
  let peak = before;
  const sockets = await Promise.all(
    Array.from({ length: READERS }, () => openConnection(port, { windowBytes: 0x7fff_0000 })),
  );
  for (const socket of sockets) {
    socket.pause();
    socket.write(readRowsOf(TABLE));
  }
  for (let second = 0; second < SECONDS; second++) {
    await pause(1000);
    for (const socket of sockets)
      taken += (socket.read(Math.min(KIB, socket.readableLength)) as Buffer | null)?.length ?? 0;
    peak = Math.max(peak, residentMib(server));
  }
  const cut = sockets.filter((socket) => socket.destroyed).length;
  console.log(
    `${READERS} readers took ${(taken / KIB / READERS / SECONDS).toFixed(2)} KiB a second each of a scan of ${TABLE_MIB} MiB; ${cut} were cut off`,
  );
  tell('each slow reader, at the peak', (peak - before) / READERS, MAX_READER_MIB);
  for (const socket of sockets) socket.destroy();
}

async function fill(directory: string): Promise<void> {
  const database = await open(directory, { durability: 'buffered' });
  const table = await database.createTable('slow', { families: { f: {} } });
  const value = Buffer.alloc(VALUE_BYTES);
  for (let row = 0; row < (TABLE_MIB * MIB) / VALUE_BYTES; row++) {
    value.writeUInt32BE(row, 0);
    const mutation = new RowMutation(`row${String(row).padStart(9, '0')}`);
    mutation.set('f:v', Buffer.from(value));
    await table.apply(mutation);
  }
  await database.close();
}

const directory = await mkdtemp(join(tmpdir(), 'edubba-wire-'));
let server: ServerProcess | undefined;
try {
  await fill(directory);
  const threads = options.get('tablet-servers');
  server = await startServer(directory, { words: threads === undefined ? [] : ['--tablet-servers', threads] });
  const port = Number(/\d+$/.exec(server.address)?.[0]);
  await idleConnections(server.child, port);
  await pause(SETTLE_MS);
  await slowReaders(server.child, port);
} finally {
  await server?.stop();
  await rm(directory, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
