/** `edubba serve`: one process that owns a directory and answers the Cloud Bigtable API until SIGTERM or SIGINT. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { openDatabase } from '../boot/index.ts';
import { startServer } from '../server/index.ts';
import { printLine } from './output.ts';

interface ServeOptions {
  readonly dir: string;
  readonly address: string;
  readonly limits: string;
  readonly insecurePublic?: boolean;
}

export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .description('serve the Cloud Bigtable API from a directory')
    .option('--limits <default|cloud>', 'which limits are enforced: the paper’s where they are wider (row keys to 64 KB), or exactly the cloud’s', 'default')
    .option('--insecure-public', 'allow an address that is not loopback, without TLS and authentication')
    .action(async (_own: unknown, command: Command) => {
      const { dir = './edubba-data', address = '127.0.0.1:8086', ...rest } = command.optsWithGlobals<Partial<ServeOptions> & { limits: string }>();
      await serve({ dir, address, ...rest });
    });
}

async function serve({ dir, address, limits, insecurePublic = false }: ServeOptions): Promise<void> {
  const { service, env, close } = await openDatabase({ directory: dir, settings: { limits: limits as 'default' | 'cloud' } });
  try {
    const stopped = untilSignal();
    const server = await startServer({ service, env, address, insecurePublic });
    for (const line of greeting(server.address, resolve(dir))) printLine(line);
    printLine(`listening on ${server.address}`);
    printLine(`stopping on ${await stopped}`);
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
