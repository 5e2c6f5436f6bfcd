/** `edubba serve`: one process that owns a directory and answers the Cloud Bigtable API until SIGTERM or SIGINT. */
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { BigtableError, Code, invalidArgument } from '../base/index.ts';
import { type LogFields, type Logger, Metrics } from '../env/index.ts';
import { connectionLimit, type DatabaseSettings, modeForOthers, openDatabase, serverCacheBytes, type ThreadedDatabase } from '../boot/index.ts';
import type { JwtOptions, RunningServer, ServerOptions, TlsFiles } from '../server/index.ts';
import { StopReason } from './stop-reason.ts';
import type { Terminal } from './terminal.ts';

interface ServeOptions {
  readonly dir: string;
  readonly address: string;
  readonly limits: 'default' | 'cloud';
  readonly durability: 'synced' | 'buffered';
  /** MiB. Default: by the machine's memory. */
  readonly cache?: number;
  /** Default: one a core. */
  readonly tabletServers?: number;
  readonly maxConnections?: number;
  readonly insecurePublic?: boolean;
  readonly tlsKey?: string;
  readonly tlsCert?: string;
  readonly tlsClientCa?: string;
  readonly tokens?: string;
  readonly jwtIssuer?: string;
  readonly jwtAudience?: string;
  readonly jwtJwks?: string;
}

const MORE = `
Serves --dir (default ./edubba-data, made if it is not there) on --address (default 127.0.0.1:8086; port 0 chooses a free one), and
prints "listening on HOST:PORT" when it is ready. Any project and instance will do. What is acknowledged is on disk.

SIGTERM or SIGINT (Ctrl-C) ends it: calls under way are answered first. kill -9 loses nothing that was acknowledged.

An address that other machines can reach needs TLS and a way for callers to say who they are: bearer tokens of --tokens (\`edubba help token\`), tokens that an
issuer signs (--jwt-…), or certificates (--tls-client-ca). Where tokens are set up every call needs one. Only the gRPC health check is open to everybody.
Certificates, tokens and keys are read again when their files change. At --max-connections a new connection takes the place of one that has no calls.

An exception that nobody caught ends it in order too, with status 1.

Examples:
  edubba serve
  edubba serve --dir /var/lib/edubba --address 127.0.0.1:9000
  edubba serve --limits cloud --tablet-servers 2
  edubba serve --address 0.0.0.0:8086 --tls-key server.key --tls-cert server.pem --tokens tokens.txt
  edubba serve --address 0.0.0.0:8086 --tls-key server.key --tls-cert server.pem --tls-client-ca clients.pem
  edubba serve --address 0.0.0.0:8086 --tls-key server.key --tls-cert server.pem \\
    --jwt-issuer https://accounts.example.org --jwt-audience edubba --jwt-jwks https://accounts.example.org/keys`;

export function addServeCommand(program: Command, terminal: Terminal): void {
  program
    .command('serve')
    .description('serve the Cloud Bigtable API from a directory')
    .addOption(
      new Option('--limits <which>', 'limits that are enforced: default = the paper’s where they are wider (row keys to 64 KB), cloud = the cloud’s')
        .choices(['default', 'cloud'])
        .default('default'),
    )
    .addOption(
      new Option('--durability <when>', 'when a write is acknowledged: synced = when it is on disk, buffered = before (a crash or an I/O error loses the last milliseconds; a full disk loses nothing)')
        .choices(['synced', 'buffered'])
        .default('synced'),
    )
    .addOption(new Option('--cache <MiB>', 'blocks of files that are kept in memory (default: an eighth of the memory there is, 64 MiB to 4 GiB)').argParser(mebibytesOf))
    .addOption(new Option('--tablet-servers <count>', 'tablet servers, each in a thread of its own where there are several (default: 1)').argParser(countOf))
    .addOption(new Option('--max-connections <count>', 'connections at once (default: 20000, or what the limit of open files leaves)').argParser(connectionsOf))
    .option('--tls-client-ca <file>', 'serve only clients with a certificate that these authorities (PEM) have signed')
    .option('--tokens <file>', 'serve only calls with a bearer token of this file')
    .option('--jwt-issuer <issuer>', 'serve only calls with a bearer token (JWT) of this issuer')
    .option('--jwt-audience <audience>', 'what the audience of such a token must be')
    .option('--jwt-jwks <file or url>', 'the issuer’s keys (the jwks_uri of an OpenID provider)')
    .option('--insecure-public', 'allow an address that other machines can reach, without TLS or authentication')
    .addHelpText('after', MORE)
    .action(async (_own: unknown, command: Command) => {
      const { dir = './edubba-data', address = '127.0.0.1:8086', ...rest } = command.optsWithGlobals<Partial<ServeOptions> & Pick<ServeOptions, 'limits' | 'durability'>>();
      await serve({ dir, address, ...rest }, terminal);
    });
}

async function serve(options: ServeOptions, terminal: Terminal): Promise<void> {
  const { dir, address, limits, durability, cache, tabletServers = 1, insecurePublic = false, tokens, maxConnections } = options;
  // before anything is loaded or opened that could fail for want of descriptors, and not say so
  connectionLimit(tabletServers);
  const blockCacheBytes = cache === undefined ? serverCacheBytes() : cache * MIB;
  // a server goes on when nobody reads what it prints
  const say = (line: string): Promise<void> => terminal.print(`${line}\n`).catch(() => {});
  const tls = tlsOf(options);
  const jwt = jwtOf(options);
  const logger = complaints(terminal);
  const metrics = new Metrics();
  const open = { directory: dir, settings: { limits, durability, blockCacheBytes }, logger, metrics };
  const stop = new StopReason(logger, metrics);
  let server: Awaited<ReturnType<typeof startIn>> | undefined;
  try {
    await warnOfDirectory(dir, logger);
    server = await startIn(open, tabletServers, { address, insecurePublic, tls, access: { tokensFile: tokens, jwt }, maxConnections });
    for (const line of greeting({ address: server.address, directory: resolve(dir), durability, tls: tls !== undefined })) await say(line);
    stop.isServing = true;
    await say(`listening on ${server.address}`);
    await say(`stopping on ${await stop.reason}`);
    if (!stop.isFailure) for (const line of (await server.report?.()) ?? []) await say(line);
  } finally {
    await server?.close();
    stop.end();
  }
  if (stop.isFailure) throw new BigtableError(Code.INTERNAL, 'the server has ended because of an exception that nobody caught: see above');
}

async function warnOfDirectory(directory: string, logger: Logger): Promise<void> {
  const mode = await modeForOthers(directory, 'secret');
  if (mode !== undefined) logger.warn('other users of this machine can read the database', { directory, mode, remedy: `chmod 700 ${directory}` });
}

/** Serves the directory, in this thread or in several; `close` ends the server and the database. */
async function startIn(
  open: { readonly directory: string; readonly settings: Partial<DatabaseSettings>; readonly logger: Logger; readonly metrics: Metrics },
  tabletServers: number,
  door: Omit<ServerOptions, 'service' | 'env'>,
): Promise<RunningServer & { readonly report?: () => Promise<string[]> }> {
  // loaded while the disk is waited for: the API's messages alone take as long as opening a small directory
  const opening = tabletServers > 1 ? undefined : openDatabase(open);
  // that it failed is told below
  opening?.catch(() => {});
  const { startServer, startThreadedServer } = await import('../server/index.ts');
  if (opening === undefined) {
    const { address, database, close } = await startThreadedServer({ ...door, database: { ...open, tabletServers } });
    return { address, close, report: () => passedOn(database) };
  }
  const { service, env, close } = await opening;
  try {
    const server = await startServer({ ...door, service, env });
    return { address: server.address, close: () => server.close().finally(close) };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What came to one thread and belonged to another, or to the master. */
async function passedOn(database: ThreadedDatabase): Promise<string[]> {
  const counters = [...(await database.counters())];
  return counters.map(([place, counts]) => `tablet server ${place} passed ${counts['transport.callsPassedOn'] ?? 0} calls on to other threads`);
}

const MOST_TABLET_SERVERS = 64;
const MIB = 1024 * 1024;

/** Several threads share a port by what only POSIX has. */
function countOf(text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || count > MOST_TABLET_SERVERS) throw new InvalidArgumentError(`a whole number from 1 to ${MOST_TABLET_SERVERS} is wanted`);
  return count;
}

function connectionsOf(text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new InvalidArgumentError('a whole number from 1 on is wanted');
  return Number(text);
}

function mebibytesOf(text: string): number {
  if (!/^\d{1,7}$/.test(text)) throw new InvalidArgumentError('a whole number of MiB is wanted');
  return Number(text);
}

function tlsOf({ tlsKey: keyFile, tlsCert: certFile, tlsClientCa: clientCaFile }: ServeOptions): TlsFiles | undefined {
  if (keyFile !== undefined && certFile !== undefined) return { keyFile, certFile, clientCaFile };
  if (keyFile !== undefined || certFile !== undefined) throw invalidArgument('TLS needs both --tls-key and --tls-cert');
  if (clientCaFile !== undefined) throw invalidArgument('--tls-client-ca needs TLS: --tls-key and --tls-cert');
  return undefined;
}

function jwtOf({ jwtIssuer: issuer, jwtAudience: audience, jwtJwks: keys }: ServeOptions): JwtOptions | undefined {
  if (issuer !== undefined && audience !== undefined && keys !== undefined) return { issuer, audience, keys };
  if (issuer === undefined && audience === undefined && keys === undefined) return undefined;
  throw invalidArgument('tokens of an issuer need all of --jwt-issuer, --jwt-audience and --jwt-jwks');
}

/** What somebody should look at goes to standard error. */
function complaints(terminal: Terminal): Logger {
  const complain = (message: string, fields: LogFields = {}): void => {
    const facts = Object.entries(fields).map(([name, value]) => ` ${name}=${JSON.stringify(value)}`);
    terminal.complain(`edubba: ${message}${facts.join('')}\n`);
  };
  return { info() {}, warn: complain, error: complain };
}

interface Greeting {
  readonly address: string;
  readonly directory: string;
  readonly durability: ServeOptions['durability'];
  readonly tls: boolean;
}

function greeting({ address, directory, durability, tls }: Greeting): string[] {
  const when = durability === 'synced' ? 'acknowledged = on disk' : 'acknowledged = on its way to the disk';
  const how = tls ? tlsClients(address) : plainClients(address);
  return [`Edubba: Cloud Bigtable API v2 (data and table admin), ${when}`, `data in ${directory}`, ...how, 'any project and instance will do; stop with Ctrl-C'];
}

function plainClients(address: string): string[] {
  return [
    `clients in Node, Go, Java, Python and cbt: export BIGTABLE_EMULATOR_HOST=${address}`,
    `  Node    new Bigtable({ projectId: 'p' }).instance('i').table('t')          @google-cloud/bigtable`,
    `  Go      bigtable.NewClient(ctx, "p", "i")                                  cloud.google.com/go/bigtable`,
    `  Java    BigtableDataSettings.newBuilderForEmulator(${address.slice(address.lastIndexOf(':') + 1)})                    com.google.cloud:google-cloud-bigtable`,
    `  Python  bigtable.Client(project='p', admin=True).instance('i').table('t')  google-cloud-bigtable`,
    '  cbt     cbt -project p -instance i createtable t families=f',
  ];
}

/** BIGTABLE_EMULATOR_HOST makes clients speak plain text. */
function tlsClients(address: string): string[] {
  return [
    'clients speak TLS to it, by their setting for the endpoint and not by BIGTABLE_EMULATOR_HOST; docs/clients.md has each of them',
    `  edubba  edubba --address ${address} --tls-ca FILE ls`,
  ];
}
