/** `edubba serve`: one process that owns a directory and answers the Cloud Bigtable API until SIGTERM or SIGINT. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { BigtableError, Code } from '../../base/index.ts';
import type { Logger, Metrics, MetricsReport } from '../../env/index.ts';
import {
  connectionLimit,
  DATABASE_SETTINGS,
  type DatabaseSettings,
  modeForOthers,
  openDatabase,
  type ThreadedDatabase,
} from '../../boot/index.ts';
import type { JwtOptions, RunningServer, ServerOptions, TlsFiles } from '../../server/index.ts';
import { greeting } from './greeting.ts';
import { ServeMonitor } from './serve-monitor.ts';
import type { ServeSettings } from '../settings/serve-settings.ts';
import { describeMemory } from '../settings/settings-checks.ts';
import { addSettingOptions, settingsOf } from '../settings/settings-options.ts';
import type { EffectiveSettings } from '../settings/settings-sources.ts';
import { StopReason } from './stop-reason.ts';
import type { Terminal } from '../output/terminal.ts';

const MORE = `
Serves --dir (default ./edubba-data, made if it is not there) on --address (default 127.0.0.1:8086; port 0
chooses a free one), and prints "listening on HOST:PORT" when it is ready. Any project and instance will do.
What is acknowledged is on disk.

SIGTERM or SIGINT (Ctrl-C) ends it: calls under way are answered first. kill -9 loses nothing that was
acknowledged.

An address that other machines can reach needs TLS and a way for callers to say who they are: bearer tokens of
--tokens (\`edubba help token\`), tokens that an issuer signs (--jwt-…), or certificates (--tls-client-ca).
With tokens every call needs one. Only the gRPC health check is open to all callers. Certificates,
tokens and keys are read again when their files change. At --max-connections a new connection takes the place
of one that has no calls.

An uncaught exception ends it in order too, with status 1.

Each setting may also stand in the environment (EDUBBA_MEMTABLE_BYTES for --memtable-bytes) or in the file of
--settings: the flag goes first, then the environment, then the file. \`edubba settings\` prints what is in
force and its source.

Examples:
  edubba serve
  edubba serve --settings edubba.toml --memtable-bytes 256MiB
  edubba serve --dir /var/lib/edubba --address 127.0.0.1:9000
  edubba serve --limits cloud --tablet-servers 2
  edubba serve --address 0.0.0.0:8086 --tls-key server.key --tls-cert server.pem --tokens tokens.txt
  edubba serve --address 0.0.0.0:8086 --tls-key server.key --tls-cert server.pem --tls-client-ca clients.pem
  edubba serve --address 0.0.0.0:8086 --tls-key server.key --tls-cert server.pem \\
    --jwt-issuer https://accounts.example.org --jwt-audience edubba --jwt-jwks https://accounts.example.org/keys`;

export function addServeCommand(program: Command, terminal: Terminal): void {
  const command = program
    .command('serve')
    .description('serve the Cloud Bigtable API from a directory')
    .addHelpText('after', MORE);
  addSettingOptions(command).action(async (_own: unknown, called: Command) => {
    // how they are to be told is a setting, too
    const warnings: string[] = [];
    await serve(await settingsOf(called, terminal, (warning) => void warnings.push(warning)), terminal, warnings);
  });
}

async function serve(
  { values: settings, origins }: EffectiveSettings,
  terminal: Terminal,
  warnings: readonly string[],
): Promise<void> {
  const { dir, durability, tabletServers, compactionsAtOnce } = settings;
  // before anything is loaded or opened that could fail for want of descriptors, and not say so
  connectionLimit(tabletServers, compactionsAtOnce);
  // a server continues when its output is not read
  const say = (line: string): Promise<void> => terminal.print(`${line}\n`).catch(() => {});
  const monitor = new ServeMonitor(settings, terminal);
  const { logger, metrics } = monitor;
  for (const warning of warnings) logger.warn(warning);
  const open = { directory: dir, settings: databaseSettings(settings), logger, metrics };
  // the limit of open files may silently lower the default
  const door = doorOf(settings, { isMaxConnectionsSet: origins.maxConnections.source !== 'default' });
  const stop = new StopReason(logger, metrics, () => logger.flush());
  let server: Awaited<ReturnType<typeof startIn>> | undefined;
  try {
    await monitor.start();
    await warnOfDirectory(dir, logger);
    server = await startIn(open, tabletServers, door);
    const tokens = settings.tokens !== undefined || settings.jwtIssuer !== undefined;
    const facts = { address: server.address, directory: resolve(dir), durability, tls: door.tls !== undefined, tokens };
    for (const line of greeting({ ...facts, memory: describeMemory(settings), metrics: monitor.greeting }))
      await say(line);
    stop.isServing = true;
    monitor.serving(server.reports);
    await say(`listening on ${server.address}`);
    const reason = await stop.reason;
    monitor.stopping();
    await say(`stopping on ${reason}`);
    if (!stop.isFailure) for (const line of (await server.report?.()) ?? []) await say(line);
  } finally {
    await server?.close();
    stop.end();
    await monitor.close();
  }
  if (stop.isFailure)
    throw new BigtableError(Code.INTERNAL, 'the server has ended because of an uncaught exception: see above');
}

function databaseSettings(settings: ServeSettings): DatabaseSettings {
  const names = Object.keys(DATABASE_SETTINGS) as (keyof DatabaseSettings)[];
  return Object.fromEntries(names.map((name) => [name, settings[name]])) as unknown as DatabaseSettings;
}

type Door = Omit<ServerOptions, 'service' | 'env'>;

function doorOf(settings: ServeSettings, { isMaxConnectionsSet }: { readonly isMaxConnectionsSet: boolean }): Door {
  const {
    address,
    insecurePublic,
    tokens,
    maxConnections,
    maxConnectionsPerAddress,
    keepAliveMs,
    keepAliveTimeoutMs,
    maxIdleMs,
    stopGraceMs,
    accessLog,
    slowMs,
  } = settings;
  return {
    address,
    insecurePublic,
    tls: tlsOf(settings),
    access: { tokensFile: tokens, jwt: jwtOf(settings) },
    maxConnections: isMaxConnectionsSet ? maxConnections : undefined,
    maxConnectionsPerAddress,
    keepAliveMs,
    keepAliveTimeoutMs,
    maxIdleMs,
    graceMs: stopGraceMs,
    callLog: { accessLog, slowMs },
  };
}

async function warnOfDirectory(directory: string, logger: Logger): Promise<void> {
  const mode = await modeForOthers(directory, 'secret');
  if (mode !== undefined)
    logger.warn('other users of this machine can read the database', {
      directory,
      mode,
      remedy: `chmod 700 ${directory}`,
    });
}

/** Serves the directory, in this thread or in several; `close` ends the server and the database. */
async function startIn(
  open: {
    readonly directory: string;
    readonly settings: DatabaseSettings;
    readonly logger: Logger;
    readonly metrics: Metrics;
  },
  tabletServers: number,
  door: Door,
): Promise<
  RunningServer & {
    readonly report?: () => Promise<string[]>;
    readonly reports?: () => Promise<readonly MetricsReport[]>;
  }
> {
  // loaded while the disk is waited for: the API's messages alone take as long as opening a small directory
  const opening = tabletServers > 1 ? undefined : openDatabase(open);
  // the failure is reported below
  opening?.catch(() => {});
  const { startServer, startThreadedServer } = await import('../../server/index.ts');
  if (opening === undefined) {
    const { address, database, close } = await startThreadedServer({ ...door, database: { ...open, tabletServers } });
    return { address, close, report: () => passedOn(database), reports: () => database.reports() };
  }
  const { service, env, close } = await opening;
  try {
    const server = await startServer({ ...door, compactionsAtOnce: open.settings.compactionsAtOnce, service, env });
    return { address: server.address, close: () => server.close().finally(close) };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Calls that one thread received for another, or for the master. */
async function passedOn(database: ThreadedDatabase): Promise<string[]> {
  const counters = [...(await database.counters())];
  return counters.map(
    ([place, counts]) =>
      `tablet server ${place} passed ${counts['transport.callsPassedOn'] ?? 0} calls on to other threads`,
  );
}

function tlsOf({
  tlsKey: keyFile,
  tlsCert: certFile,
  tlsClientCa: clientCaFile,
  tlsMinVersion: minVersion,
}: ServeSettings): TlsFiles | undefined {
  return keyFile !== undefined && certFile !== undefined ? { keyFile, certFile, clientCaFile, minVersion } : undefined;
}

function jwtOf({ jwtIssuer: issuer, jwtAudience: audience, jwtJwks: keys }: ServeSettings): JwtOptions | undefined {
  return issuer !== undefined && audience !== undefined && keys !== undefined ? { issuer, audience, keys } : undefined;
}
