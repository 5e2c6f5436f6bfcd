import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { main } from '../index.ts';

async function failure(words: readonly string[]): Promise<{ readonly status: number; readonly err: string }> {
  let err = '';
  const status = await main(words, {
    environment: { PATH: '/nowhere' },
    print: async () => {},
    complain: (text) => void (err += text),
  });
  return { status, err };
}

test('cluster up says what is missing, or wrong, and starts nothing', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'edubba-up-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const up = ['cluster', 'up', '--dir', join(folder, 'cluster')];
  const missing = await failure(up);
  assert.equal(missing.status, 1);
  assert.match(missing.err, /FAILED_PRECONDITION: etcd was not found in the PATH: install it .* or --etcd etcd:/);
  const wrong = await failure([...up, '--etcd', join(folder, 'no-such-program')]);
  assert.match(wrong.err, /FAILED_PRECONDITION: \S+no-such-program was not found/);
  for (const address of ['0.0.0.0:8086', '127.0.0.1', '127.0.0.1:65535']) {
    const { err } = await failure([...up, '--address', address]);
    assert.match(err, /INVALID_ARGUMENT: invalid address/, address);
  }
  assert.equal((await failure([...up, '--servers', '0'])).status, 2);
  assert.ok(!existsSync(join(folder, 'cluster', 'etcd')));
});
