/** `edubba tabletserver`: one tablet server of a cluster, which is a front door of the Cloud Bigtable API, too. */
import type { Command } from 'commander';
import { connectionLimit } from '../../boot/index.ts';
import type { Terminal } from '../output/terminal.ts';
import { databaseSettings, doorFacts, doorOf } from '../serve/door-options.ts';
import { greeting } from '../serve/greeting.ts';
import { runServer } from '../serve/run-server.ts';
import { addSettingOptions, serverSettings } from '../settings/settings-options.ts';
import { clusterOptions, directoryOf, placeOf } from './cluster-settings.ts';

const MORE = `
One of the tablet servers of a cluster. All processes of the cluster name the same lock service (--lock), the
same store (--files), and know the same secret. The master gives it tablets; any number of servers may come
and go. Each answers the Cloud Bigtable API on --address (default 127.0.0.1:8086) for all rows of the cluster.
It prints "listening on HOST:PORT" when it is ready. It answers calls on tables as soon as a master runs.

SIGTERM or SIGINT ends it: calls under way are answered first, and its tablets go to other servers. kill -9
loses nothing that was acknowledged: other servers read its log, at most 10 seconds later.

Settings are as those of \`edubba serve\`; see there for TLS and tokens.

Examples:
  edubba tabletserver --lock etcd://10.0.0.1,10.0.0.2,10.0.0.3 --files s3://bucket/cluster \\
    --cluster-address 10.0.0.7:8090 --cluster-secret-file cluster.secret --address 0.0.0.0:8086 --tls-key …
  edubba tabletserver --settings cluster.toml`;

export function addTabletServerCommand(program: Command, terminal: Terminal): void {
  const command = program
    .command('tabletserver')
    .description('run a tablet server of a cluster')
    .addHelpText('after', MORE);
  addSettingOptions(command, 'tabletserver').action(async (_own: unknown, called: Command) => {
    const { effective, warnings } = await serverSettings(called, 'tabletserver', terminal);
    const settings = effective.values;
    const { address, compactionsAtOnce } = settings;
    connectionLimit(1, compactionsAtOnce);
    const door = doorOf(effective);
    const about = { settings, terminal, warnings, address, directory: directoryOf(settings) };
    await runServer(about, async ({ logger, metrics }) => {
      const { startClusterServer } = await import('../../server/index.ts');
      const server = await startClusterServer({
        ...door,
        cluster: clusterOptions(settings, terminal, { logger, metrics }),
        settings: databaseSettings(settings),
      });
      const facts = { ...doorFacts(settings, door), address: server.address, place: placeOf(settings) };
      return {
        address: server.address,
        greeting: (metricsLine) => [
          ...greeting({ ...facts, metrics: metricsLine }),
          `other processes of the cluster reach it at ${server.clusterAddress}`,
        ],
        close: () => server.close(),
      };
    });
  });
}
