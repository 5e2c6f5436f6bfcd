/**
 * Google's Node client, unchanged, against the server that BIGTABLE_EMULATOR_HOST names. Prints 'PASS step' or 'FAIL
 * step: why'.
 *
 *   CLIENT_FOLDER=… BIGTABLE_EMULATOR_HOST=… node node.mjs [BIG_ROW_MIB]
 *
 * Or over TLS: EDUBBA_TLS_HOST=… EDUBBA_TLS_CA=FILE EDUBBA_TOKEN=… in place of BIGTABLE_EMULATOR_HOST, with which the
 * client speaks plain text alone.
 *
 * CLIENT_FOLDER has the client in its node_modules. The steps are those of go/main.go and python.py.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(join(process.env.CLIENT_FOLDER, 'package.json'));
const { Bigtable } = require('@google-cloud/bigtable');
const BIG_ROW_MIB = Number(process.argv[2] ?? 100);
const BIG_CELL_MIB = 5;

/** The client's settings for a server with a certificate of EDUBBA_TLS_CA. */
function overTls() {
  const { EDUBBA_TLS_HOST: address, EDUBBA_TLS_CA: ca, EDUBBA_TOKEN: token } = process.env;
  if (address === undefined) return {};
  const { credentials, Metadata } = require('google-gax').grpc;
  const withToken = credentials.createFromMetadataGenerator((_options, callback) => {
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${token}`);
    callback(null, metadata);
  });
  const [host, port] = address.split(':');
  return {
    servicePath: host,
    port: Number(port),
    sslCreds: credentials.combineChannelCredentials(credentials.createSsl(readFileSync(ca)), withToken),
    metricsEnabled: false,
  };
}

const bigtable = new Bigtable({ projectId: 'node-scenario', ...overTls() });
const instance = bigtable.instance('scenario');
const table = instance.table(`node-${process.pid}`);
let failed = 0;

async function step(name, body) {
  try {
    await body();
    console.log(`PASS ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAIL ${name}: ${String(error.message).split('\n').slice(0, 6).join(' | ')}`);
  }
}

const keysOf = (rows) => rows.map((row) => row.id);
const read = async (options) => (await table.getRows(options))[0];
const key = (i) => `row${String(i).padStart(3, '0')}`;

await step('create a table with families and GC rules', async () => {
  await table.create({
    families: [{ name: 'a', rule: { versions: 2 } }, { name: 'b' }, { name: 'extra' }],
    splits: ['row050'],
  });
  const [exists] = await table.exists();
  assert.equal(exists, true);
  const [tables] = await instance.getTables();
  assert.ok(tables.some(({ id }) => id === table.id));
  const [families] = await table.getFamilies();
  assert.deepEqual(families.map(({ id }) => id).sort(), ['a', 'b', 'extra']);
});

await step('the instance and its cluster are there', async () => {
  assert.deepEqual(await instance.exists(), [true]);
  assert.equal((await instance.get())[0].metadata.state, 'READY');
  assert.ok((await bigtable.getInstances())[0].some(({ id }) => id === 'scenario'));
  const [clusters] = await instance.getClusters();
  assert.deepEqual(
    clusters.map(({ metadata }) => metadata.state),
    ['READY'],
  );
  const [states] = await table.getReplicationStates();
  assert.deepEqual(
    [...states].map(([cluster, { replicationState }]) => [cluster, replicationState]),
    [[clusters[0].id, 'READY']],
  );
});

await step('a table that exists is refused', async () => {
  await assert.rejects(table.create({ families: ['a'] }), { code: 6 });
});

await step('add, change and delete families', async () => {
  await table.createFamily('c', { rule: { age: { seconds: 3600, nanos: 0 }, versions: 3, union: true } });
  await table.family('b').setMetadata({ rule: { versions: 5 } });
  await table.family('extra').delete();
  const [families] = await table.getFamilies();
  assert.deepEqual(families.map(({ id }) => id).sort(), ['a', 'b', 'c']);
  assert.equal(families.find(({ id }) => id === 'b').metadata.gcRule.maxNumVersions, 5);
});

await step('a single write reads back', async () => {
  await table
    .row('single')
    .save({ a: { q: { value: 'first', timestamp: 1000 }, '': { value: 'empty qualifier', timestamp: 1000 } } });
  const [row] = await table.row('single').get();
  assert.equal(row.data.a.q[0].value, 'first');
  assert.equal(String(row.data.a.q[0].timestamp), '1000');
  assert.equal(row.data.a[''][0].value, 'empty qualifier');
});

await step('versions and GC by number', async () => {
  for (const n of [1, 2, 3]) await table.row('versions').save({ a: { q: { value: `v${n}`, timestamp: n * 1000 } } });
  const [row] = await table.row('versions').get();
  assert.deepEqual(row.data.a.q.map(({ value }) => value).slice(0, 2), ['v3', 'v2']);
  const [newest] = await read({ keys: ['versions'], filter: [{ column: { cellLimit: 1 } }] });
  assert.deepEqual(
    newest.data.a.q.map(({ value }) => value),
    ['v3'],
  );
});

await step('a batch of 100 rows', async () => {
  const entries = [];
  for (let i = 0; i < 100; i++)
    entries.push({
      key: key(i),
      data: { a: { q: { value: `value${i}`, timestamp: 1000 } }, b: { n: { value: i, timestamp: 1000 } } },
    });
  await table.insert(entries);
  assert.equal((await read({ prefix: 'row' })).length, 100);
});

await step('a batch tells which entries failed', async () => {
  const bad = { key: 'bad', data: { nofamily: { q: 'x' } } };
  const good = { key: 'good', data: { a: { q: 'x' } } };
  await assert.rejects(
    table.insert([good, bad]),
    (error) => error.name === 'PartialFailureError' && error.errors.length === 1,
  );
  assert.deepEqual(keysOf(await read({ keys: ['bad', 'good'] })), ['good']);
});

await step('bytes of every value', async () => {
  const all = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  await table.row('bytes').save({ a: { q: { value: all, timestamp: 1000 } } });
  const [row] = await read({ keys: ['bytes'], decode: false });
  assert.ok(row.data.a.q[0].value.equals(all));
});

await step('ranges, prefixes and limits', async () => {
  assert.deepEqual(keysOf(await read({ start: 'row010', end: 'row012' })), ['row010', 'row011', 'row012']);
  assert.deepEqual(
    keysOf(
      await read({
        ranges: [{ start: { value: 'row010', inclusive: false }, end: { value: 'row012', inclusive: false } }],
      }),
    ),
    ['row011'],
  );
  assert.equal((await read({ prefix: 'row09' })).length, 10);
  assert.deepEqual(keysOf(await read({ start: 'row', limit: 3 })), ['row000', 'row001', 'row002']);
  assert.deepEqual(keysOf(await read({ keys: ['row005', 'nothing', 'row003'] })), ['row003', 'row005']);
});

await step('a missing row is not found', async () => {
  await assert.rejects(table.row('nothing').get(), (error) => error.code === 404);
  assert.deepEqual(await read({ keys: ['nothing'] }), []);
});

const filtered = async (filter, keys = ['row001', 'row002']) =>
  (await read({ keys, filter })).map((row) => [row.id, Object.keys(row.data).sort().join()]);

await step('filters: family, column, value, row', async () => {
  assert.deepEqual(await filtered({ family: 'a' }), [
    ['row001', 'a'],
    ['row002', 'a'],
  ]);
  assert.deepEqual(await filtered({ column: 'n' }), [
    ['row001', 'b'],
    ['row002', 'b'],
  ]);
  assert.deepEqual(await filtered({ value: 'value2' }), [['row002', 'a']]);
  assert.deepEqual(await filtered({ value: /value[1]/ }), [['row001', 'a']]);
  assert.deepEqual(await filtered({ row: '.*1' }), [['row001', 'a,b']]);
  assert.deepEqual(await filtered({ all: false }), []);
});

await step('filters: time and value ranges, cell limits', async () => {
  assert.deepEqual(await filtered({ time: { start: new Date(2), end: new Date(3) } }), []);
  assert.equal((await filtered({ time: { start: new Date(1), end: new Date(2) } })).length, 2);
  assert.deepEqual(await filtered({ value: { start: 'value1', end: 'value2' } }), [
    ['row001', 'a'],
    ['row002', 'a'],
  ]);
  assert.deepEqual(await filtered({ row: { cellLimit: 1 } }), [
    ['row001', 'a'],
    ['row002', 'a'],
  ]);
  assert.deepEqual(await filtered({ row: { cellOffset: 1 } }), [
    ['row001', 'b'],
    ['row002', 'b'],
  ]);
});

await step('filters: chain, interleave, condition, strip, label', async () => {
  assert.deepEqual(await filtered([{ family: 'a' }, { value: 'value1' }]), [['row001', 'a']]);
  const [both] = await read({
    keys: ['row001'],
    filter: { interleave: [{ family: 'a' }, { family: 'a' }, { family: 'b' }] },
  });
  assert.equal(both.data.a.q.length, 2);
  assert.deepEqual(
    await filtered({ condition: { test: [{ value: 'value1' }], pass: [{ family: 'a' }], fail: [{ family: 'b' }] } }),
    [
      ['row001', 'a'],
      ['row002', 'b'],
    ],
  );
  const [stripped] = await read({ keys: ['row001'], filter: [{ family: 'a' }, { value: { strip: true } }] });
  assert.equal(stripped.data.a.q[0].value, '');
  const [labelled] = await read({ keys: ['row001'], filter: [{ family: 'a' }, { label: 'mark' }] });
  assert.deepEqual(labelled.data.a.q[0].labels, ['mark']);
});

await step('increment and append', async () => {
  const row = table.row('counter');
  await row.increment('b:count', 5);
  await row.increment('b:count', -2);
  await row.createRules([{ column: 'a:log', append: 'one' }]);
  await row.createRules([{ column: 'a:log', append: ',two' }]);
  const [after] = await read({ keys: ['counter'], decode: false });
  assert.equal(after.data.b.count[0].value, 3);
  assert.equal(after.data.a.log[0].value.toString(), 'one,two');
});

await step('check and mutate', async () => {
  const row = table.row('checked');
  await row.save({ a: { q: { value: 'yes', timestamp: 1000 } } });
  const write = (value) => [{ method: 'insert', data: { b: { answer: { value, timestamp: 1000 } } } }];
  const [matched] = await row.filter([{ value: 'yes' }], { onMatch: write('matched'), onNoMatch: write('not') });
  assert.equal(matched, true);
  const [again] = await row.filter([{ value: 'nothing' }], { onMatch: write('matched'), onNoMatch: write('not') });
  assert.equal(again, false);
  const [after] = await row.get();
  assert.deepEqual(
    after.data.b.answer.map(({ value }) => value),
    ['not'],
  );
});

await step('deletions: cells, column, family, row', async () => {
  const row = table.row('deleted');
  await row.save({
    a: { one: { value: '1', timestamp: 1000 }, two: { value: '2', timestamp: 1000 } },
    b: { x: { value: '3', timestamp: 1000 } },
    c: { y: { value: '4', timestamp: Date.now() * 1000 } },
  });
  await row.deleteCells(['a:one']);
  let [left] = await row.get();
  assert.deepEqual(Object.keys(left.data.a), ['two']);
  await table.mutate({ key: 'deleted', method: 'delete', data: ['b'] });
  [left] = await row.get();
  assert.deepEqual(Object.keys(left.data).sort(), ['a', 'c']);
  await row.delete();
  assert.deepEqual(await read({ keys: ['deleted'] }), []);
  await row.save({ a: { one: { value: 'back', timestamp: 500000 } } });
  [left] = await row.get();
  assert.equal(left.data.a.one[0].value, 'back');
});

await step('sample row keys', async () => {
  const [keys] = await table.sampleRowKeys();
  assert.ok(keys.length >= 1);
  const offsets = keys.map(({ offset }) => Number(offset));
  assert.deepEqual(
    offsets,
    [...offsets].sort((x, y) => x - y),
  );
});

await step('drop a prefix', async () => {
  await table.deleteRows('row09');
  assert.equal((await read({ prefix: 'row' })).length, 90);
});

await step('rows of many cells, and one of 3 MiB', async () => {
  const kib = Buffer.alloc(1024, 'k');
  const cells = (count, value) =>
    Object.fromEntries(Array.from({ length: count }, (_, c) => [`c${c}`, { value, timestamp: 1000 }]));
  await table.insert(
    Array.from({ length: 200 }, (_, i) => ({ key: `wide${String(i).padStart(3, '0')}`, data: { b: cells(15, kib) } })),
  );
  await table.insert({ key: 'wide200', data: { b: cells(3, Buffer.alloc(1024 * 1024, 'k')) } });
  const sizes = (await read({ prefix: 'wide', decode: false })).flatMap((row) =>
    Object.values(row.data.b).map(([{ value }]) => value.length),
  );
  assert.deepEqual([sizes.length, sizes.reduce((a, b) => a + b, 0)], [200 * 15 + 3, (200 * 15 + 3 * 1024) * 1024]);
});

await step(`a row of ${BIG_ROW_MIB} MiB in cells of ${BIG_CELL_MIB} MiB`, async () => {
  const digests = new Map();
  for (let i = 0; i < BIG_ROW_MIB / BIG_CELL_MIB; i++) {
    const value = Buffer.alloc(BIG_CELL_MIB << 20);
    for (let at = 0, x = i + 1; at < value.length; at += 4)
      value.writeUInt32LE((x = (Math.imul(x, 1664525) + 1013904223) >>> 0), at);
    const qualifier = `cell${String(i).padStart(3, '0')}`;
    digests.set(qualifier, createHash('sha256').update(value).digest('hex'));
    await table.mutate({ key: 'big', method: 'insert', data: { b: { [qualifier]: { value, timestamp: 1000 } } } });
  }
  const [row] = await read({ keys: ['big'], decode: false });
  assert.deepEqual(Object.keys(row.data.b).sort(), [...digests.keys()]);
  for (const [qualifier, digest] of digests)
    assert.equal(createHash('sha256').update(row.data.b[qualifier][0].value).digest('hex'), digest);
});

await step('delete all rows, then the table', async () => {
  await table.truncate();
  assert.deepEqual(await read({}), []);
  await table.delete();
  const [exists] = await table.exists();
  assert.equal(exists, false);
});

await bigtable.close?.();
process.exit(failed > 0 ? 1 : 0);
