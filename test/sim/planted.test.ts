import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { PLANTED_BUGS } from '../../sim/planted/index.ts';
import { meetingsOf } from '../../sim/world/faults.ts';

const SOURCES = new URL(import.meta.url.includes('/dist/') ? '../../../src/' : '../../src/', import.meta.url);

describe('planted bugs', () => {
  test('each has a name of its own', () => {
    assert.equal(new Set(PLANTED_BUGS.map(({ name }) => name)).size, PLANTED_BUGS.length);
  });

  test('each meeting that one names comes in some of the first seeds', () => {
    const drawn = new Set(Array.from({ length: 400 }, (_, seed) => [...meetingsOf(seed)]).flat());
    for (const { name, meeting } of PLANTED_BUGS) assert.ok(meeting === undefined || drawn.has(meeting), name);
  });

  for (const { name, title, changes } of PLANTED_BUGS)
    test(`${name}: ${title}: the text that it changes stands in the source once`, () => {
      for (const { file, text } of changes)
        assert.equal(readFileSync(new URL(file, SOURCES), 'utf8').split(text).length, 2, `src/${file}: ${text}`);
    });
});
