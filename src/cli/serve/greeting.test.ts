import assert from 'node:assert/strict';
import { test } from 'node:test';
import { greeting } from './greeting.ts';

const FACTS = {
  place: 'data in /data',
  durability: 'synced',
  memory: 'memory: 1 GiB',
  metrics: 'metrics: none',
} as const;

function lineOf(given: { address: string; tls: boolean; tokens: boolean }, part: string): string {
  return greeting({ ...FACTS, ...given }).find((line) => line.includes(part)) ?? assert.fail(part);
}

test('clients get an address that they can call', () => {
  const variable = (address: string): string =>
    lineOf({ address, tls: false, tokens: false }, 'export').replace(/.*=/, '');
  assert.equal(variable('127.0.0.1:8086'), '127.0.0.1:8086');
  assert.equal(variable('10.0.0.0:8086'), '10.0.0.0:8086');
  assert.equal(variable('0.0.0.0:9000'), '127.0.0.1:9000');
  assert.equal(variable('[::]:9000'), '127.0.0.1:9000');
});

test('with TLS the command has all options that a call needs', () => {
  const command = (address: string, tokens: boolean): string =>
    lineOf({ address, tls: true, tokens }, '  edubba ').trim();
  assert.equal(command('10.0.0.1:8086', false), 'edubba  edubba --address 10.0.0.1:8086 --tls-ca FILE ls');
  assert.equal(
    command('0.0.0.0:8086', true),
    'edubba  edubba --address HOST:8086 --tls-ca FILE --token-file FILE ls    HOST: a name of the certificate',
  );
});
