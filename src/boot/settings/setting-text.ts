/**
 * Settings as text: sizes as 64MiB, durations as 30s, and the words for defaults and ranges.
 *
 * Invariant: `parseSetting(setting, formatSetting(setting, value))` is the value again.
 */
import { defaultOf, isValueOf, type NumberSetting, type Setting, type SettingValue } from './setting.ts';

const SIZES: readonly (readonly [unit: string, bytes: number])[] = [
  ['TiB', 2 ** 40],
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
  ['KiB', 2 ** 10],
  ['B', 1],
];
const DURATIONS: readonly (readonly [unit: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
];
const TRUTHS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['yes', true],
  ['on', true],
  ['1', true],
  ['false', false],
  ['no', false],
  ['off', false],
  ['0', false],
]);

/** The value of a text; undefined where it is invalid for the setting. */
export function parseSetting(setting: Setting, text: string): SettingValue | undefined {
  const value = valueOf(setting, text);
  return isValueOf(setting, value) ? value : undefined;
}

function valueOf(setting: Setting, text: string): unknown {
  switch (setting.kind) {
    case 'bytes':
      return parseNumber(text, SIZES);
    case 'duration':
      return parseNumber(text, DURATIONS);
    case 'count':
      return parseNumber(text, []);
    case 'boolean':
      return TRUTHS.get(text.toLowerCase());
    default:
      return text;
  }
}

/** A number without a unit counts bytes or milliseconds. */
function parseNumber(text: string, units: readonly (readonly [string, number])[]): number | undefined {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?) ?([a-z]*)$/i.exec(text.trim()) ?? [];
  const factor = unit === '' ? 1 : units.find(([name]) => name.toLowerCase() === unit.toLowerCase())?.[1];
  if (number === '' || factor === undefined) return undefined;
  const value = Number(number) * factor;
  // 1.1 s is 1100 ms, which binary fractions miss by a little
  return Math.abs(value - Math.round(value)) < 1e-6 ? Math.round(value) : value;
}

/** The shortest exact form: 64 MiB, 1536 KiB, 90 s. */
export function formatSetting(setting: Setting, value: SettingValue): string {
  if (typeof value !== 'number') return String(value);
  if (setting.kind === 'bytes') return formatNumber(value, SIZES);
  return setting.kind === 'duration' ? formatNumber(value, DURATIONS) : String(value);
}

function formatNumber(value: number, units: readonly (readonly [string, number])[]): string {
  const [unit, factor] = units.find(([, size]) => value >= size && value % size === 0) ?? units.at(-1)!;
  return `${value / factor} ${unit}`;
}

/** The valid texts of the setting, to follow "must be". */
export function wantedText(setting: Setting): string {
  switch (setting.kind) {
    case 'bytes':
      return `a size ${rangeText(setting)}, as 64MiB (B, KiB, MiB, GiB or TiB; without a unit: bytes)`;
    case 'duration':
      return `a duration ${rangeText(setting)}, as 30s (ms, s, m, h or d; without a unit: milliseconds)`;
    case 'count':
      return `a whole number ${rangeText(setting)}`;
    case 'choice':
      return `${setting.choices.slice(0, -1).join(', ')} or ${setting.choices.at(-1)}`;
    case 'boolean':
      return 'true or false';
    case 'address':
      return `HOST:PORT or [IPV6]:PORT, with a port from 0 to 65535${setting.word === undefined ? '' : `; or ${setting.word}`}`;
    case 'path':
      return 'a path';
    case 'text':
      return 'a text that is not empty';
  }
}

/** "from 1 KiB to 16 MiB", or "of at least 1 MiB" where there is no upper bound. */
function rangeText(setting: NumberSetting): string {
  const { least, most } = setting;
  return most === undefined
    ? `of at least ${formatSetting(setting, least)}`
    : `from ${formatSetting(setting, least)} to ${formatSetting(setting, most)}`;
}

/** "64 MiB", "an eighth of the memory", "none". */
export function defaultText(setting: Setting): string {
  if (typeof setting.default === 'object') return setting.default.says;
  const value = defaultOf(setting);
  if (value !== undefined) return formatSetting(setting, value);
  return ('without' in setting ? setting.without : undefined) ?? 'none';
}

/** The range or the choices: "at least 1 MiB", "1 to 64", "synced or buffered". Empty where the kind has no bounds. */
export function boundsText(setting: Setting): string {
  switch (setting.kind) {
    case 'bytes':
    case 'duration':
    case 'count': {
      const { least, most } = setting;
      if (most === undefined) return least === 0 ? '' : `at least ${formatSetting(setting, least)}`;
      return `${formatSetting(setting, least)} to ${formatSetting(setting, most)}`;
    }
    case 'choice':
      return wantedText(setting);
    default:
      return '';
  }
}

/** The whole docstring: the setting's purpose, its default and its bounds. */
export function docText(setting: Setting): string {
  const bounds = boundsText(setting);
  return `${setting.doc} Default: ${defaultText(setting)}${bounds === '' ? '' : `; ${bounds}`}.`;
}
