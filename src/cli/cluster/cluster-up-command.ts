/** `edubba cluster up`: a whole cluster on this machine, for trying out. */
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { invalidArgument } from '../../base/index.ts';
import type { Terminal } from '../output/terminal.ts';
import { LocalCluster } from './local-cluster.ts';

const MORE = `
Starts an etcd, two masters and some tablet servers, each a process of its own, over a directory. Everything
is in --dir (default ./edubba-cluster): data, locks, the secret, and a log of each process. The next start goes
on with them. Any tablet server answers for all rows.

What is killed is started again: try \`kill -9\` of any process that is printed, and read on.
SIGTERM or SIGINT (Ctrl-C) ends all of them.

Examples:
  edubba cluster up
  edubba cluster up --servers 5 --etcd /opt/etcd/etcd
  edubba cluster up --dir try --address 127.0.0.1:9000 --etcd etcd://127.0.0.1:2379/try`;

const DEFAULT_DIRECTORY = './edubba-cluster';
const DEFAULT_ADDRESS = '127.0.0.1:8086';
const MAX_SERVERS = 64;
const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

interface UpOptions {
  readonly servers: number;
  readonly masters: number;
  readonly etcd?: string;
  readonly dir?: string;
  readonly address?: string;
}

export function addClusterCommand(program: Command, terminal: Terminal): void {
  const cluster = program.command('cluster').description('a whole cluster on this machine, for trying out');
  cluster
    .command('up')
    .description('start a cluster on this machine')
    .addOption(numberOption('--servers <count>', 'tablet servers', 3))
    .addOption(numberOption('--masters <count>', 'masters', 2))
    .addOption(
      new Option('--etcd <path or address>', 'the program etcd, or etcd://HOST:PORT (default: etcd of the PATH)'),
    )
    .addHelpText('after', MORE)
    .action(async (_own: unknown, called: Command) => up(called.optsWithGlobals<UpOptions>(), terminal));
}

function numberOption(flags: string, what: string, fallback: number): Option {
  return new Option(flags, `number of ${what}`).default(fallback).argParser((text) => {
    const number = Number(text);
    if (!/^\d+$/.test(text) || number < 1 || number > MAX_SERVERS)
      throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_SERVERS}.`);
    return number;
  });
}

async function up(options: UpOptions, terminal: Terminal): Promise<void> {
  const { servers, masters, etcd, dir = DEFAULT_DIRECTORY, address = DEFAULT_ADDRESS } = options;
  const { environment } = terminal;
  const [, host, port] = /^(127\.0\.0\.1|localhost):(\d{1,5})$/.exec(address) ?? [];
  if (host === undefined || Number(port) + servers > 65_536)
    throw invalidArgument(`invalid address ${JSON.stringify(address)}: expected 127.0.0.1:PORT, for trying out`);
  const say = (line: string): Promise<void> => terminal.print(`${line}\n`).catch(() => {});
  const stopped = new Promise<string>((stop) => {
    // a second signal must not end this process before the others
    for (const signal of SIGNALS) process.on(signal, stop);
  });
  const node = { path: process.execPath, args: [...process.execArgv, process.argv[1]!] };
  const parts = { directory: resolve(dir), servers, masters, host, port: Number(port), etcd, node, environment, say };
  const cluster = new LocalCluster(parts);
  try {
    const starting = cluster.start().then(() => say(`everything is in ${resolve(dir)}; stop with Ctrl-C`));
    await Promise.race([starting, stopped]);
    await say(`stopping on ${await stopped}`);
    // it fails because its processes are ended
    starting.catch(() => {});
  } finally {
    await cluster.close();
  }
}
