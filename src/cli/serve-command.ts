/** `edubba serve`: one process that owns a directory and answers the Cloud Bigtable API until SIGTERM or SIGINT. */
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { openDatabase } from '../boot/index.ts';
import { startServer } from '../server/index.ts';
import type { Terminal } from './terminal.ts';

interface ServeOptions {
  readonly dir: string;
  readonly address: string;
  readonly limits: 'default' | 'cloud';
  readonly insecurePublic?: boolean;
}

const MORE = `
Serves --dir (default ./edubba-data, made if it is not there) on --address (default 127.0.0.1:8086; port 0 chooses a free one), and
prints "listening on HOST:PORT" when it is ready. Any project and instance will do. What is acknowledged is on disk.

SIGTERM or SIGINT (Ctrl-C) ends it: calls under way are answered first. kill -9 loses nothing that was acknowledged.

Examples:
  edubba serve
  edubba serve --dir /var/lib/edubba --address 127.0.0.1:9000
  edubba serve --limits cloud`;

export function addServeCommand(program: Command, terminal: Terminal): void {
  program
    .command('serve')
    .description('serve the Cloud Bigtable API from a directory')
    .addOption(
      new Option('--limits <which>', 'limits that are enforced: default = the paper’s where they are wider (row keys to 64 KB), cloud = the cloud’s')
        .choices(['default', 'cloud'])
        .default('default'),
    )
    .option('--insecure-public', 'allow an address that other machines can reach, without TLS and authentication')
    .addHelpText('after', MORE)
    .action(async (_own: unknown, command: Command) => {
      const { dir = './edubba-data', address = '127.0.0.1:8086', ...rest } = command.optsWithGlobals<Partial<ServeOptions> & Pick<ServeOptions, 'limits'>>();
      await serve({ dir, address, ...rest }, terminal);
    });
}

async function serve({ dir, address, limits, insecurePublic = false }: ServeOptions, terminal: Terminal): Promise<void> {
  // a server goes on when nobody reads what it prints
  const say = (line: string): Promise<void> => terminal.print(`${line}\n`).catch(() => {});
  const { service, env, close } = await openDatabase({ directory: dir, settings: { limits } });
  try {
    const stopped = untilSignal();
    const server = await startServer({ service, env, address, insecurePublic });
    for (const line of greeting(server.address, resolve(dir))) await say(line);
    await say(`listening on ${server.address}`);
    await say(`stopping on ${await stopped}`);
    await server.close();
  } finally {
    await close();
  }
}

function untilSignal(): Promise<string> {
  return new Promise((resolveSignal) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolveSignal(signal));
  });
}

function greeting(address: string, directory: string): string[] {
  return [
    'Edubba: Cloud Bigtable API v2 (data and table admin), acknowledged = on disk',
    `data in ${directory}`,
    `clients in Node, Go, Java, Python and cbt: export BIGTABLE_EMULATOR_HOST=${address}`,
    `  Node    new Bigtable({ projectId: 'p' }).instance('i').table('t')          @google-cloud/bigtable`,
    `  Go      bigtable.NewClient(ctx, "p", "i")                                  cloud.google.com/go/bigtable`,
    `  Java    BigtableDataSettings.newBuilderForEmulator(${address.slice(address.lastIndexOf(':') + 1)})                    com.google.cloud:google-cloud-bigtable`,
    `  Python  bigtable.Client(project='p', admin=True).instance('i').table('t')  google-cloud-bigtable`,
    '  cbt     cbt -project p -instance i createtable t families=f',
    'any project and instance will do; stop with Ctrl-C',
  ];
}
