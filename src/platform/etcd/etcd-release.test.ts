import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isOldRelease } from './etcd-release.ts';

test('releases of etcd with known errors in leases and watches are old ones', () => {
  for (const version of ['2.3.8', '3.3.27', '3.4.0', '3.4.30', '3.5.0-rc.1', '3.5.12'])
    assert.equal(isOldRelease(version), true, version);
  for (const version of ['3.4.31', '3.4.40', '3.5.13', '3.6.0', '3.7.3', '4.0.0', '', 'next'])
    assert.equal(isOldRelease(version), false, version);
});
