/**
 * A setting as data: its kind, its range, its default and its purpose. Tables of settings are the one source of the
 * checks, the flags, the environment variables, the keys of the settings file, the help and the generated page.
 *
 * Values are in the unit of the setting's name: bytes, or milliseconds (`…Ms`).
 */
import { parseAddress } from '../../wire/index.ts';

interface SettingBase {
  /** A heading of the help and of the page. */
  readonly group: string;
  /** The purpose, in whole sentences, without the default and the range. */
  readonly doc: string;
  /** The text of the help, where the first sentence of `doc` does not suit it. */
  readonly brief?: string;
  /** The placeholder of the value in the help. Default: the kind. */
  readonly placeholder?: string;
}

/** A default that is computed when the program runs. */
export interface ComputedDefault<T> {
  readonly compute: () => T;
  /** The default in words. */
  readonly says: string;
}

type Default<T> = T | ComputedDefault<T>;

export interface NumberSetting extends SettingBase {
  /** Bytes, a number of things, or a duration in milliseconds. */
  readonly kind: 'bytes' | 'count' | 'duration';
  readonly least: number;
  /** Default: no bound. */
  readonly most?: number;
  readonly default: Default<number>;
}

export interface ChoiceSetting extends SettingBase {
  readonly kind: 'choice';
  readonly choices: readonly string[];
  readonly default: string;
}

export interface BooleanSetting extends SettingBase {
  readonly kind: 'boolean';
  readonly default: boolean;
}

/** A path of a file or directory, an address (HOST:PORT), or other text. Without a default it may be left out. */
export interface TextSetting extends SettingBase {
  readonly kind: 'path' | 'address' | 'text';
  readonly default?: string;
  /** The default in words, for a setting that may be left out. Default: "none". */
  readonly without?: string;
  /** A word that is valid in place of an address. */
  readonly word?: string;
}

export type Setting = NumberSetting | ChoiceSetting | BooleanSetting | TextSetting;
export type SettingValue = number | string | boolean;

type ValueOf<S extends Setting> = S extends NumberSetting
  ? number
  : S extends BooleanSetting
    ? boolean
    : S extends { readonly kind: 'choice'; readonly choices: readonly (infer C)[] }
      ? C
      : S extends { readonly default: string }
        ? string
        : string | undefined;

/** The settings of a table, by name. */
export type SettingsOf<T extends Readonly<Record<string, Setting>>> = { readonly [K in keyof T]: ValueOf<T[K]> };

/** Undefined where the setting may be left out. */
export function defaultOf(setting: Setting): SettingValue | undefined {
  const { default: value } = setting;
  return typeof value === 'object' ? value.compute() : value;
}

/** The defaults of the settings that have one. */
export function defaultsOf<T extends Readonly<Record<string, Setting>>>(table: T): SettingsOf<T> {
  return Object.fromEntries(
    Object.entries(table).map(([name, setting]) => [name, defaultOf(setting)]),
  ) as SettingsOf<T>;
}

/** True when the value is valid for the setting. */
export function isValueOf(setting: Setting, value: unknown): value is SettingValue {
  switch (setting.kind) {
    case 'bytes':
    case 'count':
    case 'duration':
      return (
        Number.isSafeInteger(value) &&
        (value as number) >= setting.least &&
        (value as number) <= (setting.most ?? Number.MAX_SAFE_INTEGER)
      );
    case 'choice':
      return typeof value === 'string' && setting.choices.includes(value);
    case 'boolean':
      return typeof value === 'boolean';
    case 'address':
      return typeof value === 'string' && (value === setting.word || parseAddress(value) !== undefined);
    case 'path':
    case 'text':
      return typeof value === 'string' && value !== '' && !value.includes('\0');
  }
}
