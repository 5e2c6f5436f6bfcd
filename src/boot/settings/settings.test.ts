import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../../base/index.ts';
import { LIMITS } from '../../model/index.ts';
import { docText } from './setting-text.ts';
import {
  checkSettings,
  checkShares,
  DATABASE_SETTINGS,
  DEFAULT_SETTINGS,
  type DatabaseSettings,
  serverCacheBytes,
  serverIndexBytes,
} from './settings.ts';

describe('settings', () => {
  test('a setting that is left out has its default', () => {
    assert.deepEqual(checkSettings(), DEFAULT_SETTINGS);
    assert.deepEqual(checkSettings({ limits: 'cloud', blockCacheBytes: 0 }), {
      ...DEFAULT_SETTINGS,
      limits: 'cloud',
      blockCacheBytes: 0,
    });
    const explicit = { blockSizeBytes: undefined } as unknown as Partial<DatabaseSettings>;
    assert.equal(checkSettings(explicit).blockSizeBytes, DEFAULT_SETTINGS.blockSizeBytes);
  });

  test('they are frozen, the defaults too', () => {
    assert.throws(() => Object.assign(checkSettings(), { limits: 'cloud' }), TypeError);
    assert.throws(() => Object.assign(DEFAULT_SETTINGS, { limits: 'cloud' }), TypeError);
  });

  test('a server keeps an eighth of the memory it may use, within bounds', () => {
    const gib = 2 ** 30;
    assert.deepEqual(
      [gib / 4, gib, 1024 * gib].map((bytes) => serverCacheBytes(bytes)),
      [gib / 16, gib / 8, gib / 4],
    );
    assert.ok(serverCacheBytes() >= gib / 16);
    assert.deepEqual(
      [gib / 4, gib, 64 * gib].map((bytes) => serverIndexBytes(bytes)),
      [gib / 16, gib / 8, gib],
    );
  });

  test('inherited names are read, too', () => {
    assert.equal(checkSettings(Object.create({ blockCacheBytes: 1 })).blockCacheBytes, 1);
  });

  test('each has a docstring that agrees with the table', () => {
    const source = readFileSync('src/boot/settings/settings.ts', 'utf8');
    const [body = ''] = /export interface DatabaseSettings \{[^}]*\}/.exec(source) ?? [];
    const documented = [...body.matchAll(/\/\*\*((?:[^*]|\*(?!\/))*)\*\/\s*readonly (\w+):/g)].map(
      ([, text = '', name]) => [name, text.replaceAll(/\s*\n\s*\*?\s*/g, ' ').trim()],
    );
    assert.deepEqual(
      documented,
      Object.entries(DATABASE_SETTINGS).map(([name, setting]) => [name, docText(setting)]),
    );
  });

  test('all limits of the API may be chosen', () => {
    assert.deepEqual([...DATABASE_SETTINGS.limits.choices].sort(), Object.keys(LIMITS).sort());
  });

  test('several tablet servers refuse shares that are too small for one', () => {
    const mib = 2 ** 20;
    checkShares(checkSettings({ memtableBytes: 4 * mib }), 4);
    for (const name of ['memtableBytes', 'requestBytes', 'logLimitBytes'] as const) {
      const message = new RegExp(`setting ${name} is 3 MiB, which 4 tablet servers share: they need at least 4 MiB`);
      assert.throws(() => checkShares(checkSettings({ [name]: 3 * mib }), 4), { code: Code.INVALID_ARGUMENT, message });
    }
  });

  const wrong: [unknown, RegExp][] = [
    [{ memtableBytes: 1024 }, /memtableBytes must be a whole number of bytes from 1048576 .* not 1024/],
    [{ memtableBytes: '64 MiB' }, /memtableBytes must be .* not 64 MiB/],
    [{ blockSizeBytes: 2 ** 25 }, /blockSizeBytes must be .* to 16777216/],
    [{ blockCacheBytes: -1 }, /blockCacheBytes/],
    [{ requestBytes: 1.5e6 + 0.5 }, /requestBytes/],
    [{ logLimitBytes: Number.NaN }, /logLimitBytes/],
    [{ durability: 'sometimes' }, /durability must be one of synced, buffered, not sometimes/],
    [{ limits: 'none' }, /limits must be one of default, cloud, not none/],
    [{ limits: 'constructor' }, /limits must be one of/],
    [{ majorCompactionMs: 1 }, /majorCompactionMs must be a whole number of milliseconds from 1000 to/],
    [{ memtableBytes: null }, /memtableBytes must be .* not null/],
    [{ blockSize: 1 }, /unknown setting "blockSize" \(did you mean blockSizeBytes\?\)/],
    [{ memtableSize: 1 }, /unknown setting "memtableSize" \(did you mean memtableBytes\?\); there are memtableBytes/],
  ];
  for (const [given, message] of wrong) {
    test(`${JSON.stringify(given)} is refused`, () => {
      assert.throws(
        () => checkSettings(given as Partial<DatabaseSettings>),
        (error) =>
          error instanceof BigtableError && error.code === Code.INVALID_ARGUMENT && message.test(error.message),
      );
    });
  }
});
