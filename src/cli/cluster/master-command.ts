/** `edubba master`: one master of a cluster. */
import type { Command } from 'commander';
import { startMaster } from '../../boot/index.ts';
import type { Terminal } from '../output/terminal.ts';
import { runServer } from '../serve/run-server.ts';
import { addSettingOptions, serverSettings } from '../settings/settings-options.ts';
import { clusterOptions, directoryOf, placeOf } from './cluster-settings.ts';

const MORE = `
One of the masters of a cluster: one has the master lock and assigns tablets to servers, creates and deletes
tables, and deletes files that nothing needs; the others stand by. Data never pass through it: reads and
writes go on without a master.

It prints "listening on HOST:PORT" when it stands by, "is the master" when it has the lock, and "is not the
master any more" when it has lost it. SIGTERM or SIGINT ends it, and another takes over immediately; after
kill -9 when its lease has ended, 10 seconds later.

Examples:
  edubba master --lock etcd://10.0.0.1,10.0.0.2,10.0.0.3 --files s3://bucket/cluster \\
    --cluster-address 10.0.0.4:8090 --cluster-secret-file cluster.secret
  edubba master --settings cluster.toml`;

export function addMasterCommand(program: Command, terminal: Terminal): void {
  const command = program.command('master').description('run a master of a cluster').addHelpText('after', MORE);
  addSettingOptions(command, 'master').action(async (_own: unknown, called: Command) => {
    const { effective, warnings } = await serverSettings(called, 'master', terminal);
    const settings = effective.values;
    const { requestBytes, keepDeletedMs, backupStore, clusterAddress: address } = settings;
    const about = { settings, terminal, warnings, address, directory: directoryOf(settings) };
    await runServer(about, async ({ logger, metrics, say }) => {
      let hasLock = false;
      metrics.gauge('master.hasLock', () => Number(hasLock));
      const onChange = (isMaster: boolean): void => {
        hasLock = isMaster;
        void say(isMaster ? 'is the master' : 'is not the master any more');
      };
      const options = { ...clusterOptions(settings, terminal, { logger, metrics }), readCache: undefined };
      const master = await startMaster(options, { requestBytes, keepDeletedMs, backupStore, onChange });
      return {
        address: master.clusterAddress,
        greeting: (metricsLine) => [`Edubba: a master of a cluster`, placeOf(settings), metricsLine],
        close: () => master.close(),
      };
    });
  });
}
