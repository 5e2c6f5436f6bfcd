/**
 * The effective settings and their sources: the flag, else the environment variable, else the key of the settings file,
 * else the default. All errors are reported together. Pure: the given values are arguments.
 */
import { dirname, resolve } from 'node:path';
import { describeValue, didYouMean, invalidArgument, ownOf } from '../../base/index.ts';
import { defaultOf, isValueOf, parseSetting, type Setting, type SettingValue, wantedText } from '../../boot/index.ts';
import {
  flagOf,
  keyOf,
  SERVER_SETTINGS,
  type ServerSettings,
  SETTING_NAMES,
  type SettingName,
  variableOf,
} from './server-settings.ts';
import type { SettingsFile } from './settings-file.ts';

export const FILE_VARIABLE = 'EDUBBA_SETTINGS';
/** Variables of the commands that speak to a server, and the cluster's secret. */
const OTHER_VARIABLES = [FILE_VARIABLE, 'EDUBBA_TOKEN', 'EDUBBA_CLUSTER_SECRET'];

export type SettingSource = 'flag' | 'environment' | 'file' | 'default';

export interface Origin {
  readonly source: SettingSource;
  /** The flag, the variable, or FILE:LINE. */
  readonly where: string | undefined;
}

export interface EffectiveSettings {
  readonly values: ServerSettings;
  readonly origins: Readonly<Record<SettingName, Origin>>;
}

export interface GivenSettings {
  /** Texts of flags, and true or false for those without a text, by the names of settings. Other names are let be. */
  readonly flags: Readonly<Record<string, unknown>>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly file?: SettingsFile | undefined;
}

/** A given value and its source. */
interface Found {
  readonly value: unknown;
  readonly origin: Origin & { readonly where: string };
}

/** INVALID_ARGUMENT, with every name that is none and every value that is out of its range. */
export function effectiveSettings(given: GivenSettings): EffectiveSettings {
  const { flags, environment, file } = given;
  const problems = [...unknownVariables(environment), ...unknownKeys(file)];
  const values: Partial<Record<SettingName, SettingValue | undefined>> = {};
  const origins: Partial<Record<SettingName, Origin>> = {};
  for (const name of SETTING_NAMES) {
    const setting: Setting = SERVER_SETTINGS[name];
    const found = [flagFor(name, flags), variableFor(name, environment), entryFor(name, file)].filter(
      (one) => one !== undefined,
    );
    // what is overridden is checked too: it would surprise when the other goes
    const [first] = found.map((one) => {
      const value = typeof one.value === 'string' ? parseSetting(setting, one.value) : one.value;
      if (isValueOf(setting, value)) return { value: pathFrom(setting, value, one.origin, file), origin: one.origin };
      problems.push(
        `${one.origin.where}: ${keyOf(name)} must be ${wantedText(setting)}, not ${typeof one.value === 'string' ? quoted(one.value) : describeValue(one.value)}`,
      );
      return undefined;
    });
    values[name] = first === undefined ? defaultOf(setting) : first.value;
    origins[name] = first?.origin ?? { source: 'default', where: undefined };
  }
  complain(problems);
  return { values: Object.freeze(values) as ServerSettings, origins: origins as Record<SettingName, Origin> };
}

/** INVALID_ARGUMENT if there are problems. */
export function complain(problems: readonly string[]): void {
  if (problems.length === 1) throw invalidArgument(problems[0]!);
  if (problems.length > 1) throw invalidArgument(`${problems.length} settings are wrong:\n  ${problems.join('\n  ')}`);
}

function flagFor(name: SettingName, flags: GivenSettings['flags']): Found | undefined {
  const value = ownOf(flags, name);
  if (value === undefined) return undefined;
  return { value, origin: { source: 'flag', where: value === false ? `--no-${keyOf(name)}` : flagOf(name) } };
}

/** An empty variable is one that is not set: supervisors and compose files write those. */
function variableFor(name: SettingName, environment: GivenSettings['environment']): Found | undefined {
  const where = variableOf(name);
  const value = environment[where];
  return value === undefined || value === '' ? undefined : { value, origin: { source: 'environment', where } };
}

function entryFor(name: SettingName, file: SettingsFile | undefined): Found | undefined {
  const entry = file?.entries.find(({ key }) => key === keyOf(name));
  return entry && { value: entry.value, origin: { source: 'file', where: entry.where } };
}

/** A relative path in the file is meant from the file's directory. */
function pathFrom(
  setting: Setting,
  value: SettingValue,
  { source }: Origin,
  file: SettingsFile | undefined,
): SettingValue {
  if (setting.kind !== 'path' || source !== 'file' || !file || String(value).includes('://')) return value;
  return resolve(dirname(file.path), String(value));
}

const MAX_QUOTED_CHARS = 100;

function quoted(text: string): string {
  return JSON.stringify(text.length > MAX_QUOTED_CHARS ? `${text.slice(0, MAX_QUOTED_CHARS)}…` : text);
}

/** Variables that Kubernetes sets in every container for a service whose name begins with "edubba". */
const OF_KUBERNETES =
  /^EDUBBA_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/;

/** True for an unknown variable with Edubba's prefix. */
function unknownVariables(environment: GivenSettings['environment']): string[] {
  const known = [...SETTING_NAMES.map(variableOf), ...OTHER_VARIABLES];
  const unknown = Object.keys(environment).filter(
    (name) => name.startsWith('EDUBBA_') && !known.includes(name) && !OF_KUBERNETES.test(name),
  );
  return unknown.map((name) => `unknown setting in the environment: ${name}${didYouMean(name, known)}`);
}

function unknownKeys(file: SettingsFile | undefined): string[] {
  const known = SETTING_NAMES.map(keyOf);
  const unknown = file?.entries.filter(({ key }) => !known.includes(key)) ?? [];
  return unknown.map(({ key, value, where }) => {
    const isTable = typeof value === 'object' && value !== null && !Array.isArray(value);
    return `${where}: unknown setting ${JSON.stringify(key)}${isTable ? '; tables are not allowed' : didYouMean(key, known)}`;
  });
}
