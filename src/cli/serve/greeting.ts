/** The greeting of a server: how each client connects. */
import type { DatabaseSettings } from '../../boot/index.ts';

export interface Greeting {
  readonly address: string;
  /** The place of the data, in words. */
  readonly place: string;
  readonly durability: DatabaseSettings['durability'];
  readonly tls: boolean;
  /** True when callers need a bearer token. */
  readonly tokens: boolean;
  /** The text of describeMemory. */
  readonly memory: string;
  /** The address of metrics and probes. */
  readonly metrics: string;
}

export function greeting({ address, place, durability, tls, tokens, memory, metrics }: Greeting): string[] {
  const when = durability === 'synced' ? 'acknowledged = on disk' : 'acknowledged = on its way to the disk';
  const how = tls ? tlsClients(address, tokens) : plainClients(address);
  return [
    `Edubba: Cloud Bigtable API v2 (data and table admin), ${when}`,
    place,
    memory,
    metrics,
    ...how,
    'any project and instance will do, and local is the default of edubba ls; stop with Ctrl-C',
  ];
}

/** The address for callers: a wildcard address is replaced by `host`. */
function reachable(address: string, host: string): string {
  return address.replace(/^(0\.0\.0\.0|\[::\]):/, `${host}:`);
}

function plainClients(address: string): string[] {
  return [
    `clients in Node, Go, Java, Python and cbt: export BIGTABLE_EMULATOR_HOST=${reachable(address, '127.0.0.1')}`,
    `  Node    new Bigtable({ projectId: 'local' }).instance('local').table('t')          @google-cloud/bigtable`,
    `  Go      bigtable.NewClient(ctx, "local", "local")                                  cloud.google.com/go/bigtable`,
    `  Java    BigtableDataSettings.newBuilderForEmulator(${address.slice(address.lastIndexOf(':') + 1)})                            com.google.cloud:google-cloud-bigtable`,
    `  Python  bigtable.Client(project='local', admin=True).instance('local').table('t')  google-cloud-bigtable`,
    '  cbt     cbt -project local -instance local createtable t families=f',
  ];
}

/** BIGTABLE_EMULATOR_HOST makes clients speak plain text. */
function tlsClients(address: string, tokens: boolean): string[] {
  const words = `--address ${reachable(address, 'HOST')} --tls-ca FILE${tokens ? ' --token-file FILE' : ''}`;
  return [
    'clients speak TLS to it, by their setting for the endpoint and not by BIGTABLE_EMULATOR_HOST; docs/clients.md has each of them',
    `  edubba  edubba ${words} ls${words.includes('HOST:') ? '    HOST: a name of the certificate' : ''}`,
  ];
}
