import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { VERSION } from './version.ts';

test('the version is that of package.json', () => {
  // above src, or above dist/src
  const path = ['../../package.json', '../../../package.json']
    .map((one) => new URL(one, import.meta.url))
    .find((one) => existsSync(one));
  assert.ok(path, 'package.json is not found');
  assert.equal((JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version, VERSION);
});
