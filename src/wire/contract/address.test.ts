import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLoopback, networkOf, parseAddress } from './address.ts';

test('the network of an IPv4 address is the address, of an IPv6 address its first 64 bits', () => {
  for (const [address, network] of [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2::6', '2001:db8:1:2'],
    ['2001:db8::6', '2001:db8:0:0'],
    ['2001:db8::1:2:3:4:5', '2001:db8:0:1'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['::1', '0:0:0:0'],
  ] as const) {
    assert.equal(networkOf(address), network, address);
  }
});

test('loopback is what surely is, however it is written', () => {
  for (const own of [
    'localhost',
    'LOCALHOST',
    'LocalHost',
    '127.0.0.1',
    '127.255.255.254',
    '::1',
    '0:0:0:0:0:0:0:1',
    '::ffff:127.0.0.1',
    '::FFFF:127.1.2.3',
  ]) {
    assert.equal(isLoopback(own), true, own);
  }
  for (const other of [
    '',
    'localhost.',
    'localhost.example.org',
    '127.1',
    '127',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '128.0.0.1',
    '0.0.0.0',
    '::',
    '::ffff:0.0.0.0',
    '::ffff:128.0.0.1',
    '::127.0.0.1',
    '127.0.0.1.nip.io',
    '::2',
  ]) {
    assert.equal(isLoopback(other), false, other);
  }
});

test('an address is a host and a port; a host is a name of at most 253 characters, or an IP address', () => {
  const longest = 'h'.repeat(253);
  for (const [text, host, port] of [
    ['localhost:8086', 'localhost', 8086],
    ['127.0.0.1:0', '127.0.0.1', 0],
    ['[::1]:65535', '::1', 65535],
    ['my_host-1.example.org.:80', 'my_host-1.example.org.', 80],
    ['m\u00fcnchen.example:80', 'm\u00fcnchen.example', 80],
    [`${longest}:80`, longest, 80],
  ] as const) {
    assert.deepEqual(parseAddress(text), { host, port }, text);
  }
  for (const text of [
    '',
    ':80',
    'host',
    'host:',
    'host:x',
    'host:65536',
    'host:-1',
    'a host:80',
    ' host:80',
    'host\n:80',
    'host\0:80',
    'user@host:80',
    'http://host:80',
    '::1:80',
    '[]:80',
    '[host]:80',
    `${longest}h:80`,
    `${'h'.repeat(70_000)}:80`,
  ]) {
    assert.equal(parseAddress(text), undefined, text.slice(0, 20));
  }
});
