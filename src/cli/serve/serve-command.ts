/** `edubba serve`: one process that owns a directory and answers the Cloud Bigtable API until SIGTERM or SIGINT. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Logger, Metrics } from '../../env/index.ts';
import {
  connectionLimit,
  type DatabaseSettings,
  modeForOthers,
  openDatabase,
  type ThreadedDatabase,
} from '../../boot/index.ts';
import type { Terminal } from '../output/terminal.ts';
import { addSettingOptions, serverSettings } from '../settings/settings-options.ts';
import type { EffectiveSettings } from '../settings/settings-sources.ts';
import { databaseSettings, type Door, doorFacts, doorOf } from './door-options.ts';
import { greeting } from './greeting.ts';
import { runServer, type Running } from './run-server.ts';

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
  addSettingOptions(command, 'serve').action(async (_own: unknown, called: Command) => {
    const { effective, warnings } = await serverSettings(called, 'serve', terminal);
    await serve(effective, terminal, warnings);
  });
}

async function serve(effective: EffectiveSettings, terminal: Terminal, warnings: readonly string[]): Promise<void> {
  const settings = effective.values;
  const { dir, address, tabletServers, compactionsAtOnce } = settings;
  // before anything is loaded or opened that could fail for want of descriptors, and not say so
  connectionLimit(tabletServers, compactionsAtOnce);
  const door = doorOf(effective);
  await runServer({ settings, terminal, warnings, address, directory: dir }, async ({ logger, metrics }) => {
    await warnOfDirectory(dir, logger);
    const open = { directory: dir, settings: databaseSettings(settings), logger, metrics };
    const server = await startIn(open, tabletServers, door);
    const facts = { ...doorFacts(settings, door), address: server.address, place: `data in ${resolve(dir)}` };
    return { ...server, greeting: (metricsLine) => greeting({ ...facts, metrics: metricsLine }) };
  });
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
): Promise<Omit<Running, 'greeting'>> {
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
