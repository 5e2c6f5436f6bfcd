/**
 * The table of settings: each entry is reachable by flag, variable and file, and every mix of them obeys the order of
 * precedence.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, describe, test } from 'node:test';
import fc from 'fast-check';
import {
  DATABASE_SETTINGS,
  defaultOf,
  formatSetting,
  isValueOf,
  type Setting,
  type SettingValue,
} from '../../boot/index.ts';
import { main } from '../index.ts';
import { flagOf, keyOf, SERVER_SETTINGS, SETTING_NAMES, type SettingName, variableOf } from './server-settings.ts';
import { readSettingsFile } from './settings-file.ts';
import { settingsPage } from './settings-page.ts';
import { effectiveSettings } from './settings-sources.ts';

const MIB = 2 ** 20;
const directory = mkdtempSync(join(tmpdir(), 'edubba-settings-'));
const FILE = join(directory, 'edubba.toml');
after(() => rmSync(directory, { recursive: true }));

/** The answer of `edubba settings --json`, by key. */
async function effective(
  words: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Map<string, { value: unknown; source: string }>> {
  let [out, err] = ['', ''];
  const terminal = {
    environment,
    print: async (text: string) => void (out += text),
    complain: (text: string) => void (err += text),
    log: async (text: string) => void (err += text),
  };
  assert.equal(await main(['settings', '--json', ...words], terminal), 0, err);
  return new Map(
    out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
      .map(({ setting, value, source }) => [setting, { value, source }]),
  );
}

/** Values that every setting may have, whatever the others are. */
function valuesOf(setting: Setting): fc.Arbitrary<SettingValue> {
  switch (setting.kind) {
    case 'bytes':
      return fc.integer({ min: Math.max(setting.least, 8 * MIB), max: Math.min(setting.most ?? 64 * MIB, 64 * MIB) });
    case 'duration':
    case 'count':
      return fc.integer({
        min: setting.least,
        max: setting.kind === 'count' ? Math.min(setting.most ?? 8, 8) : (setting.most ?? 1000 * setting.least),
      });
    case 'choice':
      return fc.constantFrom(...setting.choices);
    case 'boolean':
      return fc.boolean();
    case 'address':
      return fc.constantFrom(
        '127.0.0.1:0',
        '[::1]:8086',
        'localhost:65535',
        ...(setting.word === undefined ? [] : [setting.word]),
      );
    case 'path':
      return fc.constantFrom('relative', '../above/it', '/absolute/path', 'with space', 'ünï"\\code');
    case 'text':
      return fc.string({ minLength: 1, unit: fc.constantFrom('a', 'é', '"', '\\', '#', '=', ' ', '1') });
  }
}

/** Texts that stand for the value. */
function textsOf(setting: Setting, value: SettingValue): fc.Arbitrary<string> {
  if (setting.kind === 'boolean')
    return fc.constantFrom(
      ...(value === true ? ['true', 'yes', 'on', '1', 'True'] : ['false', 'no', 'off', '0', 'FALSE']),
    );
  return fc.constantFrom(
    String(value),
    formatSetting(setting, value),
    typeof value === 'number' ? formatSetting(setting, value).replace(' ', '') : String(value),
  );
}

interface Given {
  readonly value: SettingValue;
  readonly text: string;
  /** In a file: as TOML's own number or boolean. */
  readonly plain: boolean;
}

interface Sources {
  readonly flag: Given | undefined;
  readonly environment: Given | undefined;
  readonly file: Given | undefined;
}

function givenOf(setting: Setting): fc.Arbitrary<Given> {
  return valuesOf(setting).chain((value) =>
    fc.record({ value: fc.constant(value), text: textsOf(setting, value), plain: fc.boolean() }),
  );
}

const anySources = fc.record(
  Object.fromEntries(
    SETTING_NAMES.map((name) => {
      const given = fc.option(givenOf(SERVER_SETTINGS[name]), { nil: undefined });
      return [name, fc.record({ flag: given, environment: given, file: given })];
    }),
  ) as Record<SettingName, fc.Arbitrary<Sources>>,
);

/** Settings that are refused without one another. */
const TOGETHER: SettingName[][] = [
  ['tlsKey', 'tlsCert', 'tlsClientCa'],
  ['jwtIssuer', 'jwtAudience', 'jwtJwks'],
  ['lockCa', 'lockCert', 'lockKey'],
  ['lockUser', 'lockPasswordFile'],
  ['clusterCa', 'clusterCert', 'clusterKey'],
  ['lock', 'files'],
];

function completed(sources: Readonly<Record<SettingName, Sources>>): Record<SettingName, Sources> {
  const whole = { ...sources };
  for (const names of TOGETHER) {
    if (!names.some((name) => isGiven(whole[name]))) continue;
    for (const name of names)
      if (!isGiven(whole[name])) whole[name] = { ...whole[name], file: { value: 'x', text: 'x', plain: false } };
  }
  return whole;
}

function isGiven({ flag, environment, file }: Sources): boolean {
  return flag !== undefined || environment !== undefined || file !== undefined;
}

function flagWords(name: SettingName, { value, text }: Given): string[] {
  if (SERVER_SETTINGS[name].kind === 'boolean') return [value === true ? flagOf(name) : `--no-${keyOf(name)}`];
  return [`${flagOf(name)}=${text}`];
}

function fileLine(name: SettingName, { value, text, plain }: Given): string {
  return `${keyOf(name)} = ${plain && typeof value !== 'string' ? value : JSON.stringify(text)}`;
}

function shown(setting: Setting, value: SettingValue | undefined, from: string): SettingValue | null {
  return setting.kind === 'path' && value !== undefined ? resolve(from, String(value)) : (value ?? null);
}

function expected(name: SettingName, { flag, environment, file }: Sources): { value: unknown; source: string } {
  const setting: Setting = SERVER_SETTINGS[name];
  if (flag) return { value: shown(setting, flag.value, '.'), source: 'flag' };
  if (environment) return { value: shown(setting, environment.value, '.'), source: 'environment' };
  if (file) return { value: shown(setting, file.value, directory), source: 'file' };
  return { value: shown(setting, defaultOf(setting), '.'), source: 'default' };
}

describe('the table of settings', () => {
  test('names are distinguished in every form, and by no name that Kubernetes gives', () => {
    for (const form of [keyOf, flagOf, variableOf])
      assert.equal(new Set(SETTING_NAMES.map(form)).size, SETTING_NAMES.length);
    for (const name of SETTING_NAMES) assert.doesNotMatch(variableOf(name), /_(SERVICE_HOST|SERVICE_PORT|PORT)(_|$)/);
    assert.deepEqual(
      [keyOf('tlsClientCa'), flagOf('memtableBytes'), variableOf('majorCompactionMs')],
      ['tls-client-ca', '--memtable-bytes', 'EDUBBA_MAJOR_COMPACTION_MS'],
    );
  });

  test('each has a default in its range, and whole sentences', () => {
    for (const name of SETTING_NAMES) {
      const setting: Setting = SERVER_SETTINGS[name];
      const value = defaultOf(setting);
      assert.ok(value === undefined || isValueOf(setting, value), name);
      assert.match(setting.doc, /^[A-Z`].*[.]$/, name);
    }
  });

  test('units are in the names', () => {
    for (const name of SETTING_NAMES) {
      const { kind } = SERVER_SETTINGS[name];
      assert.equal(name.endsWith('Bytes'), kind === 'bytes', name);
      assert.equal(name.endsWith('Ms'), kind === 'duration', name);
    }
  });

  test('each is used by the program, not only declared', () => {
    const files = readdirSync('src/cli', { recursive: true, encoding: 'utf8' });
    const program = files.filter((file) => file.endsWith('.ts') && !/\.test\.ts$|^settings\b/.test(file));
    const text = program.map((file) => readFileSync(join('src/cli', file), 'utf8')).join('\n');
    // the engine's are passed to it as a whole
    for (const name of SETTING_NAMES.filter((one) => !Object.hasOwn(DATABASE_SETTINGS, one)))
      assert.match(text, new RegExp(`\\b${name}\\b`), name);
  });

  test('docs/SETTINGS.md matches the table', () => {
    assert.equal(
      readFileSync('docs/SETTINGS.md', 'utf8'),
      settingsPage(),
      'node --import tsx scripts/settings.mjs --write',
    );
    for (const name of SETTING_NAMES)
      for (const form of [keyOf, flagOf, variableOf]) assert.ok(settingsPage().includes(`\`${form(name)}\``), name);
  });
});

describe('effective settings', () => {
  test('the example of the page is a settings file', async () => {
    const [, example = ''] = /```toml\n([^`]*)```/.exec(settingsPage()) ?? [];
    writeFileSync(FILE, example);
    const { values } = effectiveSettings({ flags: {}, environment: {}, file: await readSettingsFile(FILE) });
    assert.deepEqual(
      [values.dir, values.tabletServers, values.blockCacheBytes, values.memtableBytes],
      ['/var/lib/edubba', 4, 6 * 1024 * MIB, 512 * MIB],
    );
  });

  for (const name of SETTING_NAMES) {
    test(`${keyOf(name)} is reachable by flag, environment and file`, async () => {
      const setting: Setting = SERVER_SETTINGS[name];
      const sample = fc.sample(
        givenOf(setting).filter(({ value }) => value !== defaultOf(setting)),
        { numRuns: 1, seed: 1 },
      )[0] as Given;
      for (const source of ['flag', 'environment', 'file'] as const) {
        const none = { flag: undefined, environment: undefined, file: undefined };
        const all = completed({
          ...Object.fromEntries(SETTING_NAMES.map((one) => [one, none])),
          [name]: { ...none, [source]: sample },
        } as Record<SettingName, Sources>);
        assert.deepEqual((await found(all)).get(keyOf(name)), expected(name, all[name]));
      }
    });
  }

  test('any mix of sources obeys the order of precedence', async () => {
    await fc.assert(
      fc.asyncProperty(anySources, async (sources) => {
        const all = completed(sources);
        const model = SETTING_NAMES.map((name) => [keyOf(name), expected(name, all[name])]);
        assert.deepEqual(Object.fromEntries(await found(all)), Object.fromEntries(model));
      }),
      { numRuns: 200 },
    );
  });
});

/** Sets the settings as an operator would. */
function found(all: Readonly<Record<SettingName, Sources>>): ReturnType<typeof effective> {
  const given = (source: keyof Sources): [SettingName, Given][] =>
    SETTING_NAMES.flatMap((name): [SettingName, Given][] =>
      all[name][source] === undefined ? [] : [[name, all[name][source]]],
    );
  writeFileSync(
    FILE,
    given('file')
      .map(([name, one]) => `${fileLine(name, one)}\n`)
      .join(''),
    { mode: 0o600 },
  );
  const environment = Object.fromEntries(given('environment').map(([name, { text }]) => [variableOf(name), text]));
  return effective(
    given('flag').flatMap(([name, one]) => flagWords(name, one)),
    { ...environment, EDUBBA_SETTINGS: FILE },
  );
}
