import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code } from '../../base/index.ts';
import { pageOf } from './pages.ts';

const PREFIX = 'projects/p/instances/i/tables/';

describe('pages of a list', () => {
  test('are all of it, each once and in order, whatever their size', () => {
    const names = fc.uniqueArray(fc.string({ minLength: 1 }), { maxLength: 20 });
    fc.assert(
      fc.property(names, fc.nat({ max: 5 }), fc.integer({ min: 1, max: 7 }), (ids, pageSize, maxItems) => {
        const items = ids.map((id) => ({ name: PREFIX + id })).sort((a, b) => (a.name < b.name ? -1 : 1));
        const found: unknown[] = [];
        let pageToken = '';
        do {
          const page = pageOf(items, { pageSize, pageToken }, PREFIX, maxItems);
          assert.ok(page.items.length <= Math.min(pageSize || maxItems, maxItems));
          found.push(...page.items);
          pageToken = page.nextPageToken;
        } while (pageToken !== '');
        assert.deepEqual(found, items);
      }),
    );
  });

  test('do not begin after a token that no page has given', () => {
    const items = ['a', 'b'].map((id) => ({ name: PREFIX + id }));
    const { nextPageToken } = pageOf(items, { pageSize: 1, pageToken: '' }, PREFIX, 10);
    assert.notEqual(nextPageToken, '');
    const other = Buffer.from('projects/p/instances/j/tables/a').toString('base64url');
    for (const pageToken of [
      '!',
      '====',
      ' ',
      `${nextPageToken}!`,
      `${nextPageToken}=`,
      nextPageToken.slice(1),
      other,
      '\ud800',
    ])
      assert.throws(
        () => pageOf(items, { pageSize: 1, pageToken }, PREFIX, 10),
        (error) => error instanceof BigtableError && error.code === Code.INVALID_ARGUMENT,
        pageToken,
      );
  });
});
