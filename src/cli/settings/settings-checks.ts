/** Checks of settings together: contradictions are refused, risks are warnings. */
import { checkShares, defaultOf, memoryBytes } from '../../boot/index.ts';
import { flagOf, keyOf, SERVE_SETTINGS, type ServeSettings, type SettingName } from './serve-settings.ts';
import { roughBytes } from '../output/rough-bytes.ts';
import { complain } from './settings-sources.ts';

const MEMORY = [
  ['memtableBytes', 'memtables'],
  ['blockCacheBytes', 'block cache'],
  ['scanCacheBytes', 'row cache'],
  ['requestBytes', 'requests'],
  ['inMemoryBytes', 'in-memory groups'],
] as const satisfies readonly (readonly [SettingName, string])[];

/** Memory of an idle server, and of each of several tablet servers in addition. */
const PROGRAM_BYTES = 80 * 1024 * 1024;
const THREAD_BYTES = 16 * 1024 * 1024;

/** INVALID_ARGUMENT for what cannot be. Answers warnings. */
export function checkTogether(settings: ServeSettings, availableBytes = memoryBytes()): string[] {
  const { tlsKey, tlsCert, tlsClientCa, jwtIssuer, jwtAudience, jwtJwks } = settings;
  const problems: string[] = [];
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
    if (settings[name] > availableBytes && settings[name] !== defaultOf(SERVE_SETTINGS[name]))
      problems.push(
        `${keyOf(name)} is ${roughBytes(settings[name])}, more than the memory there is (${roughBytes(availableBytes)})`,
      );
  }
  complain(problems);
  checkShares(settings, settings.tabletServers);
  const sum = sumOf(settings);
  const program = PROGRAM_BYTES + (settings.tabletServers > 1 ? settings.tabletServers * THREAD_BYTES : 0);
  if (sum + program <= availableBytes) return [];
  return [
    `the memory that settings allow (${roughBytes(sum)}) and the program (about ${roughBytes(program)}) are more than there is (${roughBytes(availableBytes)}): ${partsOf(settings)}`,
  ];
}

/** For the start of a server: what its parts may take. */
export function describeMemory(settings: ServeSettings, availableBytes = memoryBytes()): string {
  return `memory: ${roughBytes(sumOf(settings))} of ${roughBytes(availableBytes)}: ${partsOf(settings)}`;
}

function sumOf(settings: ServeSettings): number {
  return MEMORY.reduce((sum, [name]) => sum + settings[name], 0);
}

function partsOf(settings: ServeSettings): string {
  return MEMORY.map(([name, what]) => `${what} ${roughBytes(settings[name])}`).join(', ');
}
