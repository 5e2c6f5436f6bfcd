import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClientQuirks } from './client-quirks.ts';

const quirks = new ClientQuirks();
const to = (headers: Record<string, string>): string => quirks.rowFraming({ header: (name) => headers[name] });

test('clients are recognised by the headers that they send, whichever client called before', () => {
  const prefix = { 'google-cloud-resource-prefix': 'projects/p/instances/i/tables/t' };
  assert.equal(to({ 'user-agent': 'grpc-go/1.83.2', ...prefix }), 'whole');
  assert.equal(to({ 'user-agent': 'my-program grpc-go/1.83.2', ...prefix }), 'whole');
  assert.equal(to({ 'x-goog-api-client': 'gl-go/1.26.0 gax/2.23.0 grpc/1.85.0 gccl/1.58.0' }), 'whole');
  assert.equal(to({ 'x-goog-api-client': 'gl-python/3.11.2 grpc/1.76.0 gax/2.28.0 gccl/2.50.2' }), 'keyed');
  assert.equal(
    to({ 'user-agent': 'grpc-go/1.83.2' }),
    'parted',
    'plain stubs follow rows over messages as the API says',
  );
  assert.equal(to({ 'user-agent': 'grpc-node-js/1.14.7', ...prefix }), 'parted');
  assert.equal(to({}), 'parted');
});
