import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { deflate } from './gzip.ts';

describe('a message that is deflated', () => {
  const message = randomBytes(3_000_000);

  test('in one buffer is one buffer', async () => {
    for (const bytes of [message.subarray(0, 1000), message]) {
      const deflated = await deflate(bytes);
      assert.ok(deflated instanceof Uint8Array);
      assert.ok(gunzipSync(deflated).equals(bytes));
    }
  });

  test('in several buffers is joined neither before nor afterwards', async (t) => {
    const concat = t.mock.method(Buffer, 'concat');
    const deflated = await deflate([message.subarray(0, 10), message.subarray(10)]);
    assert.equal(concat.mock.callCount(), 0);
    concat.mock.restore();
    assert.ok(!(deflated instanceof Uint8Array));
    assert.ok(gunzipSync(Buffer.concat(deflated)).equals(message));
  });
});
