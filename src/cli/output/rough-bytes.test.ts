import assert from 'node:assert/strict';
import { test } from 'node:test';
import { roughBytes } from './rough-bytes.ts';

test('bytes in the unit that fits, with three digits, or all of a whole number', () => {
  const cases: Readonly<Record<string, number>> = {
    '0 bytes': 0,
    '1023 bytes': 1023,
    '1 KiB': 1024,
    '1010 KiB': 1010 * 1024,
    '1023 KiB': 2 ** 20 - 1024,
    '1 MiB': 2 ** 20,
    '1.5 MiB': 1.5 * 2 ** 20,
    '336 MiB': 336 * 2 ** 20,
    '2.94 GiB': 3013 * 2 ** 20,
    '12.3 GiB': 12.3 * 2 ** 30,
    '1 GiB': 2 ** 30 - 1,
    '1024 TiB': 2 ** 50,
    '2048 TiB': 2 ** 51,
  };
  for (const [text, bytes] of Object.entries(cases)) assert.equal(roughBytes(bytes), text);
});
