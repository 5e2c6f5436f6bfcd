import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mountProblem } from './nfs-mount.ts';

const ROOT = '22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw';
const nfs = (point: string, options: string, type = 'nfs4'): string =>
  `41 22 0:38 / ${point} rw,relatime shared:12 master:3 - ${type} server:/export ${options}`;

test('a directory on NFS must be mounted without a cache of directories', () => {
  const cached = [ROOT, nfs('/mnt/data', 'rw,vers=4.2,hard,proto=tcp')].join('\n');
  for (const path of ['/mnt/data', '/mnt/data/a/b']) assert.match(mountProblem(cached, path) ?? '', /actimeo=0/);
  for (const path of ['/', '/mnt', '/mnt/database']) assert.equal(mountProblem(cached, path), undefined);
  for (const options of ['rw,noac', 'rw,acregmin=0,acregmax=0,acdirmin=0,acdirmax=0'])
    assert.equal(mountProblem([ROOT, nfs('/mnt/data', options)].join('\n'), '/mnt/data/x'), undefined);
  assert.ok(mountProblem([ROOT, nfs('/mnt/data', 'rw', 'nfs')].join('\n'), '/mnt/data'));
});

test('the deepest mount counts, and of two at one point the later one', () => {
  const inner = [nfs('/mnt', 'rw'), '50 41 8:2 / /mnt/disk rw - ext4 /dev/sdb1 rw'].join('\n');
  assert.equal(mountProblem(inner, '/mnt/disk/x'), undefined);
  assert.ok(mountProblem(inner, '/mnt/x'));
  const over = [ROOT, '50 22 8:2 / /mnt/a rw - ext4 /dev/sdb1 rw', nfs('/mnt/a', 'rw')].join('\n');
  assert.ok(mountProblem(over, '/mnt/a'));
  assert.ok(mountProblem([ROOT, nfs('/mnt/with\\040space', 'rw')].join('\n'), '/mnt/with space/x'));
});

test('where the system tells nothing there is no problem', () => {
  assert.equal(mountProblem('', '/mnt'), undefined);
});
