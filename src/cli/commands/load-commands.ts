/** Commands on what an instance costs its servers: hot tablets, and the memory layers of its clusters. */
import { Argument, type Command, Option } from 'commander';
import { BigtableError, Code, jsonKey, toBytes } from '../../base/index.ts';
import { systemClock } from '../../boot/index.ts';
import { DEFAULT_CLUSTER, type HotTablet } from '../../model/index.ts';
import { parseAge } from '../arguments/gc-policy.ts';
import { aligned, formatMicros, jsonLine } from '../output/output.ts';
import { quoted } from '../output/quote.ts';
import type { Terminal } from '../output/terminal.ts';
import { UsageError } from '../output/usage-error.ts';
import { Session } from './target.ts';

const HOT = `
For each tablet that took a large share of its server's time in a minute, the hottest first: the share, the
beginning of the minute, its table, its first row, and the first row after it. A tablet is listed once a
quarter of an hour, with the highest share. Servers keep this for a day at most, and forget it when they end.`;

const LAYER = `
While the memory layer of a cluster is on, the servers keep the files of all tables of its instance in memory
once they were read, as far as they fit (the setting in-memory-bytes). Without a word the state is printed.

Examples:
  edubba --address 127.0.0.1:8086 memorylayer on
  edubba --address 127.0.0.1:8086 memorylayer`;

interface HotOptions {
  readonly since: string;
  readonly cluster: string;
}

const clusterOption = (): Option => new Option('--cluster <cluster>', 'its cluster').default(DEFAULT_CLUSTER);

export function addLoadCommands(program: Command, terminal: Terminal): void {
  program
    .command('hottablets')
    .description('print the tablets that took most of the time of servers')
    .option('--since <age>', 'how far back: up to 48h', '24h')
    .addOption(clusterOption())
    .addHelpText('after', HOT)
    .action(({ since, cluster }: HotOptions, command: Command) => {
      const session = new Session(command, terminal);
      const ageMicros = parseAge(since);
      if (ageMicros === undefined)
        throw new UsageError(`--since must be an age such as 30m or 12h, not ${JSON.stringify(since)}`);
      return session.withService(async ({ hotTablets }, context) => {
        if (hotTablets === undefined) throw new BigtableError(Code.UNIMPLEMENTED, 'there are no hot tablets here');
        const endMicros = (terminal.clock ?? systemClock).nowMicros();
        const span = { startMicros: endMicros - ageMicros, endMicros };
        const all = await hotTablets.listHotTablets(context, clusterName(session, cluster), span);
        await terminal.print(
          session.json ? all.map(json).join('') : aligned([HEAD, ...all.map((one) => line(session, one))]),
        );
      });
    });
  program
    .command('memorylayer')
    .description('print the state of the memory layer of a cluster, or turn it on or off')
    .addArgument(new Argument('[state]', 'what it is to be').choices(['on', 'off']))
    .addOption(clusterOption())
    .addHelpText('after', LAYER)
    .action((state: 'on' | 'off' | undefined, { cluster }: HotOptions, command: Command) => {
      const session = new Session(command, terminal);
      return session.withService(async ({ memoryLayers }, context) => {
        if (memoryLayers === undefined) throw new BigtableError(Code.UNIMPLEMENTED, 'there are no memory layers here');
        const name = clusterName(session, cluster);
        const layer =
          state === undefined
            ? await memoryLayers.getMemoryLayer(context, name)
            : await memoryLayers.updateMemoryLayer(context, name, { isOn: state === 'on' });
        if (session.json) await terminal.print(jsonLine(layer));
        else if (state === undefined) await terminal.print(layer.isOn ? 'on\n' : 'off\n');
      });
    });
}

const HEAD = ['Percent', 'Minute', 'Table', 'First row', 'Up to'];

function line(session: Session, { table, range, startMicros, cpuPercent }: HotTablet): string[] {
  return [
    cpuPercent.toFixed(1),
    formatMicros(BigInt(Math.floor(startMicros))),
    table.startsWith(session.prefix) ? table.slice(session.prefix.length) : table,
    range === undefined || range.start === '' ? '-' : quoted(toBytes(range.start)),
    range?.end === undefined ? '-' : quoted(toBytes(range.end)),
  ];
}

function json({ table, range, startMicros, endMicros, cpuPercent }: HotTablet): string {
  const keys = range && { ...jsonKey('start', range.start), ...jsonKey('end', range.end) };
  return jsonLine({ table, ...keys, startMicros, endMicros, cpuPercent });
}

function clusterName(session: Session, cluster: string): string {
  return cluster.includes('/') ? cluster : `${session.prefix.slice(0, -'/tables/'.length)}/clusters/${cluster}`;
}
