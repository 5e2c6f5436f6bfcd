/** Checks of settings together: contradictions are refused, risks are warnings. */
import { checkShares, defaultOf, memoryBytes } from '../../boot/index.ts';
import {
  flagOf,
  keyOf,
  SERVER_SETTINGS,
  type ServerCommand,
  type ServerSettings,
  type SettingName,
} from './server-settings.ts';
import { roughBytes } from '../output/rough-bytes.ts';
import { complain } from './settings-sources.ts';

const MEMORY = [
  ['memtableBytes', 'memtables'],
  ['blockCacheBytes', 'block cache'],
  ['scanCacheBytes', 'row cache'],
  ['indexBytes', 'indexes'],
  ['requestBytes', 'requests'],
  ['inMemoryBytes', 'in-memory groups'],
] as const satisfies readonly (readonly [SettingName, string])[];

/** Memory of an idle server, and of each of several tablet servers in addition. */
const PROGRAM_BYTES = 80 * 1024 * 1024;
const THREAD_BYTES = 16 * 1024 * 1024;

/** INVALID_ARGUMENT for what cannot be. Answers warnings. */
export function checkTogether(
  settings: ServerSettings,
  command: ServerCommand,
  availableBytes = memoryBytes(),
): string[] {
  const { tlsKey, tlsCert, tlsClientCa, jwtIssuer, jwtAudience, jwtJwks } = settings;
  const problems = clusterProblems(settings, command);
  if ((tlsKey === undefined) !== (tlsCert === undefined))
    problems.push(`TLS needs both ${flagOf('tlsKey')} and ${flagOf('tlsCert')}`);
  if (tlsClientCa !== undefined && tlsKey === undefined && tlsCert === undefined)
    problems.push(`${flagOf('tlsClientCa')} needs TLS: ${flagOf('tlsKey')} and ${flagOf('tlsCert')}`);
  const ofIssuer = [jwtIssuer, jwtAudience, jwtJwks].filter((value) => value !== undefined).length;
  if (ofIssuer % 3 !== 0)
    problems.push(
      `tokens of an issuer need all of ${flagOf('jwtIssuer')}, ${flagOf('jwtAudience')} and ${flagOf('jwtJwks')}`,
    );
  for (const [name] of MEMORY) {
    // a default that is too large only leads to the warning below
    if (settings[name] > availableBytes && settings[name] !== defaultOf(SERVER_SETTINGS[name]))
      problems.push(
        `${keyOf(name)} is ${roughBytes(settings[name])}, more than the memory there is (${roughBytes(availableBytes)})`,
      );
  }
  complain(problems);
  // a master keeps no data
  if (command === 'master') return [];
  const tabletServers = command === 'serve' ? settings.tabletServers : 1;
  checkShares(settings, tabletServers);
  const sum = sumOf(settings);
  const program = PROGRAM_BYTES + (tabletServers > 1 ? tabletServers * THREAD_BYTES : 0);
  if (sum + program <= availableBytes) return [];
  return [
    `the memory that settings allow (${roughBytes(sum)}) and the program (about ${roughBytes(program)}) are more than there is (${roughBytes(availableBytes)}): ${partsOf(settings)}`,
  ];
}

function clusterProblems(settings: ServerSettings, command: ServerCommand): string[] {
  const { lock, files, lockUser, lockPasswordFile, lockCa, lockCert, lockKey } = settings;
  const { clusterCa, clusterCert, clusterKey } = settings;
  if (command === 'serve') {
    const given = (['lock', 'files'] as const).filter((name) => settings[name] !== undefined);
    return given.map((name) => `${keyOf(name)} is for a cluster: use edubba tabletserver and edubba master`);
  }
  const problems: string[] = [];
  if (lock === undefined) problems.push(`a cluster needs a lock service: ${flagOf('lock')} etcd://HOST:PORT`);
  if (files === undefined)
    problems.push(`a cluster needs a store: ${flagOf('files')} DIRECTORY, or ${flagOf('files')} s3://BUCKET/PREFIX`);
  if ((lockUser === undefined) !== (lockPasswordFile === undefined))
    problems.push(`a user of etcd needs both ${flagOf('lockUser')} and ${flagOf('lockPasswordFile')}`);
  if ((lockCert === undefined) !== (lockKey === undefined) || (lockCert !== undefined && lockCa === undefined))
    problems.push(
      `a certificate for etcd needs all of ${flagOf('lockCa')}, ${flagOf('lockCert')} and ${flagOf('lockKey')}`,
    );
  if ([clusterCa, clusterCert, clusterKey].filter((value) => value !== undefined).length % 3 !== 0)
    problems.push(
      `TLS between the processes of a cluster needs all of ${flagOf('clusterCa')}, ${flagOf('clusterCert')} and ${flagOf('clusterKey')}`,
    );
  return problems;
}

/** For the start of a server: what its parts may take. */
export function describeMemory(settings: ServerSettings, availableBytes = memoryBytes()): string {
  return `memory: ${roughBytes(sumOf(settings))} of ${roughBytes(availableBytes)}: ${partsOf(settings)}`;
}

function sumOf(settings: ServerSettings): number {
  return MEMORY.reduce((sum, [name]) => sum + settings[name], 0);
}

function partsOf(settings: ServerSettings): string {
  return MEMORY.map(([name, what]) => `${what} ${roughBytes(settings[name])}`).join(', ');
}
