/** The settings of a program that serves, as options of its parts. */
import { DATABASE_SETTINGS, type DatabaseSettings } from '../../boot/index.ts';
import type { JwtOptions, ServerOptions, TlsFiles } from '../../server/index.ts';
import type { ServerSettings } from '../settings/server-settings.ts';
import { describeMemory } from '../settings/settings-checks.ts';
import type { EffectiveSettings } from '../settings/settings-sources.ts';
import type { Greeting } from './greeting.ts';

export function databaseSettings(settings: ServerSettings): DatabaseSettings {
  const names = Object.keys(DATABASE_SETTINGS) as (keyof DatabaseSettings)[];
  return Object.fromEntries(names.map((name) => [name, settings[name]])) as unknown as DatabaseSettings;
}

export type Door = Omit<ServerOptions, 'service' | 'env'>;

/** The door of clients. The limit of open files may silently lower the default of connections. */
export function doorOf({ values: settings, origins }: EffectiveSettings): Door {
  const {
    address,
    insecurePublic,
    tokens,
    owners,
    unreadableFamilies,
    maxConnections,
    maxConnectionsPerAddress,
    keepAliveMs,
    keepAliveTimeoutMs,
    maxIdleMs,
    stopGraceMs,
    accessLog,
    slowMs,
  } = settings;
  return {
    address,
    insecurePublic,
    tls: tlsOf(settings),
    access: { tokensFile: tokens, jwt: jwtOf(settings) },
    rights: { owners: owners?.split(',').map((member) => member.trim()), unreadableFamilies },
    maxConnections: origins.maxConnections.source === 'default' ? undefined : maxConnections,
    maxConnectionsPerAddress,
    keepAliveMs,
    keepAliveTimeoutMs,
    maxIdleMs,
    graceMs: stopGraceMs,
    callLog: { accessLog, slowMs },
  };
}

function tlsOf({
  tlsKey: keyFile,
  tlsCert: certFile,
  tlsClientCa: clientCaFile,
  tlsMinVersion: minVersion,
}: ServerSettings): TlsFiles | undefined {
  return keyFile !== undefined && certFile !== undefined ? { keyFile, certFile, clientCaFile, minVersion } : undefined;
}

function jwtOf({ jwtIssuer: issuer, jwtAudience: audience, jwtJwks: keys }: ServerSettings): JwtOptions | undefined {
  return issuer !== undefined && audience !== undefined && keys !== undefined ? { issuer, audience, keys } : undefined;
}

/** What the greeting says of the door and of the settings. */
export function doorFacts(
  settings: ServerSettings,
  { tls }: Door,
): Pick<Greeting, 'durability' | 'tls' | 'tokens' | 'memory'> {
  const { durability, tokens, jwtIssuer } = settings;
  return {
    durability,
    tls: tls !== undefined,
    tokens: tokens !== undefined || jwtIssuer !== undefined,
    memory: describeMemory(settings),
  };
}
