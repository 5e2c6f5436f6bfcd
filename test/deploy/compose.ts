/** Files of docker compose, as far as ours go. */
import { parse } from 'yaml';
import { read } from './files.ts';

export interface Service {
  readonly [key: string]: unknown;
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly image: string;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}

export interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

export const readCompose = (path: string): Compose => parse(read(path), { merge: true }) as Compose;

/** Keys of a service that are right: a misspelt one is passed over by some versions of Docker and refused by others. */
const SERVICE_KEYS = [
  'build',
  'image',
  'ports',
  'volumes',
  'read_only',
  'cap_drop',
  'security_opt',
  'ulimits',
  'stop_grace_period',
  'restart',
  'profiles',
  'environment',
  'entrypoint',
  'command',
  'depends_on',
  'healthcheck',
];

/** The keys of services that are not known, each with its service. */
export function unknownKeys({ services }: Compose): string[] {
  return Object.entries(services).flatMap(([name, service]) =>
    Object.keys(service)
      .filter((key) => !SERVICE_KEYS.includes(key))
      .map((key) => `${name}: ${key}`),
  );
}
