/** `edubba settings`: what a program that serves would run with, and where each value comes from. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { formatSetting, type Setting, type SettingValue } from '../../boot/index.ts';
import { jsonLine } from '../output/output.ts';
import { keyOf, SERVER_SETTINGS, type SettingName, settingGroups } from './server-settings.ts';
import { addSettingOptions, settingsOf } from './settings-options.ts';
import type { EffectiveSettings } from './settings-sources.ts';
import type { Terminal } from '../output/terminal.ts';

const MORE = `
Takes the flags of \`edubba serve\`, \`edubba tabletserver\` and \`edubba master\`, reads the same environment
variables and the same file, refuses what they would refuse, and starts nothing. With --lock or --files it is a
cluster's server that refuses. A flag goes before a variable (EDUBBA_…), a variable before the file, the
file before the default. What is printed is a settings file, in which defaults are comments. Paths are
absolute.

Examples:
  edubba settings
  edubba settings --memtable-bytes 256MiB > edubba.toml
  edubba settings --settings edubba.toml
  edubba settings --json --memtable-bytes 256MiB`;

export function addSettingsCommand(program: Command, terminal: Terminal): void {
  const command = program
    .command('settings')
    .description('print what serve would run with, and from where')
    .addHelpText('after', MORE);
  addSettingOptions(command).action(async (_own: unknown, called: Command) => {
    const isJson = called.optsWithGlobals<{ json?: boolean }>().json === true;
    const warn = (message: string): void =>
      terminal.complain(isJson ? jsonLine({ warning: { message } }) : `edubba: warning: ${message}\n`);
    const effective = await settingsOf(called, { terminal, warn });
    await terminal.print(isJson ? jsonOf(effective) : tomlOf(effective));
  });
}

/** One document a setting. */
function jsonOf({ values, origins }: EffectiveSettings): string {
  const documents = [...settingGroups().values()].flat().map((name) => {
    const { source, where } = origins[name];
    return JSON.stringify({
      setting: keyOf(name),
      value: shown(name, values[name]) ?? null,
      source,
      ...(where !== undefined && { where }),
    });
  });
  return `${documents.join('\n')}\n`;
}

/** A settings file. Defaults are comments in it, so it fixes only values that were set. */
function tomlOf({ values, origins }: EffectiveSettings): string {
  const groups = [...settingGroups()].map(([group, names]) => {
    const lines = names.map((name) => {
      const value = shown(name, values[name]);
      const { where = 'default' } = origins[name];
      const assignment =
        `${keyOf(name)} = ${value === undefined ? '' : tomlValue(SERVER_SETTINGS[name], value)}`.trimEnd();
      return `${where === 'default' ? `# ${assignment}` : assignment}`.padEnd(44).concat(` # ${where}`);
    });
    return [`# ${group}`, ...lines, ''].join('\n');
  });
  return groups.join('\n');
}

function tomlValue(setting: Setting, value: SettingValue): string {
  if (setting.kind === 'count' || setting.kind === 'boolean') return String(value);
  // what JSON escapes TOML escapes so too
  return JSON.stringify(formatSetting(setting, value));
}

function shown(name: SettingName, value: SettingValue | undefined): SettingValue | undefined {
  const isPath = SERVER_SETTINGS[name].kind === 'path' && typeof value === 'string' && !value.includes('://');
  return isPath ? resolve(value) : value;
}
