import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadRareMessages, rareMessages, withRareMessages } from './rare.ts';

test('what needs the generated codec is read again from its beginning when that is loaded, and from then on at once', async () => {
  assert.throws(rareMessages, /not loaded/);
  let reads = 0;
  const read = (): unknown => {
    reads++;
    return rareMessages().filter(Buffer.alloc(0));
  };
  assert.equal(
    withRareMessages(() => 7),
    7,
    'who does not need it does not wait for it',
  );
  await assert.rejects(
    withRareMessages(async () => Promise.reject(new Error('its own'))),
    /its own/,
  );
  assert.throws(
    () =>
      withRareMessages(() => {
        throw new Error('its own');
      }),
    /its own/,
  );
  assert.throws(rareMessages, /not loaded/);

  const waits = [withRareMessages(read), withRareMessages(async () => read())];
  assert.ok(waits.every((wait) => wait instanceof Promise));
  assert.deepEqual(await Promise.all(waits), [undefined, undefined]);
  assert.equal(reads, 4);
  assert.equal(withRareMessages(read), undefined, 'without a promise');
  assert.equal(await loadRareMessages(), rareMessages());
});
