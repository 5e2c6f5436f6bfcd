/** The settings as options of a command, and what a command was given of them: flags, variables and the file. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { invalidArgument } from '../../base/index.ts';
import { boundsText, defaultText, modeForOthers, parseSetting, type Setting, wantedText } from '../../boot/index.ts';
import {
  flagOf,
  keyOf,
  SERVER_SETTINGS,
  type ServerCommand,
  type SettingName,
  settingGroups,
} from './server-settings.ts';
import { checkTogether } from './settings-checks.ts';
import { readSettingsFile } from './settings-file.ts';
import { type EffectiveSettings, effectiveSettings, FILE_VARIABLE } from './settings-sources.ts';
import type { Terminal } from '../output/terminal.ts';
import { WordsOption } from '../arguments/words-argument.ts';

/** Flags of the commands that talk to a server, which a server would be thought to obey. */
const FLAGS_OF_CLIENTS: Readonly<Record<string, string>> = {
  tls: `serve speaks TLS by ${flagOf('tlsKey')} and ${flagOf('tlsCert')}; --tls is for commands that talk to a server`,
  tlsCa: `serve asks for clients' certificates by ${flagOf('tlsClientCa')}; --tls-ca is for commands that talk to a server`,
  tokenFile: `serve asks for tokens by ${flagOf('tokens')}; --token-file is for commands that talk to a server`,
};

/** Flags of earlier versions: `--cache` is `--block-cache-bytes` in MiB. */
const CACHE_FLAG = '--cache';

/**
 * Adds a flag for each setting of that program; undefined: of all. The program takes some of them for all commands and
 * parses them itself: here they are for the help.
 */
export function addSettingOptions(command: Command, server?: ServerCommand): Command {
  command.addOption(
    new Option(
      '--settings <file>',
      `a file of settings (TOML), or ${FILE_VARIABLE}; docs/SETTINGS.md has them all`,
    ).helpGroup('Settings:'),
  );
  for (const [group, names] of settingGroups(server)) {
    for (const option of names.flatMap(optionsOf)) command.addOption(option.helpGroup(`${group}:`));
  }
  return command.addOption(new Option(`${CACHE_FLAG} <MiB>`).argParser(wholeMebibytes).hideHelp());
}

function optionsOf(name: SettingName): Option[] {
  const setting: Setting = SERVER_SETTINGS[name];
  if (setting.kind === 'boolean')
    return [new Option(flagOf(name), helpOf(setting)), new Option(`--no-${keyOf(name)}`).hideHelp()];
  const check = (text: string): string => {
    if (parseSetting(setting, text) === undefined) throw new InvalidArgumentError(`It must be ${wantedText(setting)}.`);
    return text;
  };
  const flags = `${flagOf(name)} <${placeholderOf(setting)}>`;
  const option =
    setting.kind === 'choice'
      ? new WordsOption(flags, helpOf(setting), setting.choices)
      : new Option(flags, helpOf(setting));
  return [option.argParser(check)];
}

function placeholderOf(setting: Setting): string {
  return (
    setting.placeholder ??
    {
      bytes: 'size',
      count: 'count',
      duration: 'duration',
      choice: 'which',
      boolean: '',
      path: 'path',
      address: 'host:port',
      text: 'text',
    }[setting.kind]
  );
}

/** The short text for help; the page has the whole text. */
function helpOf(setting: Setting): string {
  const [first = ''] = /^.*?\.(?= |$)/.exec(setting.doc.replaceAll('`', '')) ?? [];
  const { brief: sentence = `${first.charAt(0).toLowerCase()}${first.slice(1, -1)}` } = setting;
  const facts = [
    boundsText(setting),
    hasDefault(setting) ? `default: ${defaultText(setting).replaceAll('`', '')}` : '',
  ].filter((fact) => fact !== '');
  return facts.length === 0 ? sentence : `${sentence} (${facts.join('; ')})`;
}

/** A default that is worth saying. */
function hasDefault(setting: Setting): boolean {
  return (
    setting.kind !== 'boolean' &&
    (setting.default !== undefined || ('without' in setting && setting.without !== undefined))
  );
}

function wholeMebibytes(text: string): string {
  if (!/^\d{1,7}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of MiB.');
  return `${text}MiB`;
}

/** The settings of a program that serves, and warnings of them: how these are to be told is a setting, too. */
export async function serverSettings(
  command: Command,
  server: ServerCommand,
  terminal: Pick<Terminal, 'environment'>,
): Promise<{ readonly effective: EffectiveSettings; readonly warnings: readonly string[] }> {
  const warnings: string[] = [];
  const warn = (warning: string): void => void warnings.push(warning);
  return { effective: await settingsOf(command, { server, terminal, warn }), warnings };
}

export interface SettingsUse {
  readonly server?: ServerCommand;
  readonly terminal: Pick<Terminal, 'environment'>;
  readonly warn: (message: string) => void;
}

/**
 * The effective settings of a command with such options. INVALID_ARGUMENT with all that is wrong; warnings go to
 * `warn`. `server`: the program that they are for; undefined: a server of a cluster, where they name a lock service or
 * a store, otherwise `serve`.
 */
export async function settingsOf(
  command: Command,
  { server, terminal, warn }: SettingsUse,
): Promise<EffectiveSettings> {
  const { settings: file, cache, ...flags } = command.optsWithGlobals<Record<string, string | boolean | undefined>>();
  const [foreign] = Object.keys(FLAGS_OF_CLIENTS).filter((name) => flags[name] !== undefined);
  if (foreign !== undefined) throw invalidArgument(FLAGS_OF_CLIENTS[foreign]!);
  if (cache !== undefined) {
    if (flags['blockCacheBytes'] !== undefined)
      throw invalidArgument(`give either ${CACHE_FLAG} or ${flagOf('blockCacheBytes')}, not both`);
    flags['blockCacheBytes'] = cache;
  }
  const path = file ?? (terminal.environment[FILE_VARIABLE] || undefined);
  const effective = effectiveSettings({
    flags,
    environment: terminal.environment,
    file: path === undefined ? undefined : await readSettingsFile(String(path)),
  });
  const mode = path === undefined ? undefined : await modeForOthers(String(path), 'trusted');
  if (mode !== undefined)
    warn(`the settings can be changed by other users of this machine (mode ${mode}): chmod go-w ${path}`);
  const { values } = effective;
  const isOfCluster = values.lock !== undefined || values.files !== undefined;
  for (const warning of checkTogether(values, server ?? (isOfCluster ? 'tabletserver' : 'serve'))) warn(warning);
  return effective;
}
