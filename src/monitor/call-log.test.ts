import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../base/index.ts';
import {
  ByteBudget,
  CallNotes,
  type LogFields,
  ManualClock,
  Metrics,
  requestContext,
  silentLogger,
} from '../env/index.ts';
import type { EndedCall } from '../wire/index.ts';
import { CallLog } from './call-log.ts';

function callLog(options: { accessLog: boolean; slowMs: number }) {
  const [access, warnings]: [LogFields[], LogFields[]] = [[], []];
  const clock = new ManualClock();
  const metrics = new Metrics();
  const logger = {
    ...silentLogger,
    access: (fields: LogFields) => void access.push(fields),
    warn: (_: string, fields: LogFields = {}) => void warnings.push(fields),
  };
  return { log: new CallLog({ clock, logger, metrics, ...options }), access, warnings, clock, metrics };
}

const rangeOf = (row: string): { start: string; end: string } => ({ start: row, end: `${row}\0` });

function call(
  durationMs: number,
  notes: Partial<CallNotes> = {},
  path = '/google.bigtable.v2.Bigtable/ReadRows',
): EndedCall {
  const context = requestContext({
    budget: new ByteBudget(1024),
    principal: 'ada',
    notes: Object.assign(new CallNotes(), notes),
  });
  return { path, context, peer: '192.0.2.1', code: Code.OK, durationMs, receivedBytes: 46, sentBytes: 34 };
}

test('the access log has a line a call; slow calls are logged with their request and their costs', () => {
  const { log, access, warnings, metrics } = callLog({ accessLog: true, slowMs: 100 });
  const filter = {
    kind: 'chain',
    filters: [
      { kind: 'valueRegex', regex: 'secret' },
      { kind: 'condition', predicate: { kind: 'passAll' } },
      { kind: 'valueRegex', regex: 'x' },
    ],
  };
  log.ended(call(100, { target: 't' }));
  log.ended(
    call(250.12345, {
      target: 't',
      rows: 3,
      rowRanges: [rangeOf('a'), { start: 'b', end: undefined }, rangeOf('c')],
      filter,
      files: 4,
      tablets: 2,
      rowsScanned: 900,
      blockHits: 7,
      blockMisses: 8,
      loads: 1,
      loadMs: 99.5,
      queuedMs: 0.25,
    }),
  );
  const facts = {
    method: 'google.bigtable.v2.Bigtable/ReadRows',
    target: 't',
    principal: 'ada',
    peer: '192.0.2.1',
    code: 'OK',
    receivedBytes: 46,
    sentBytes: 34,
  };
  assert.deepEqual(access, [
    { ...facts, ms: 100 },
    { ...facts, rows: 3, ms: 250.123 },
  ]);
  assert.deepEqual(warnings, [
    {
      ...facts,
      rows: 3,
      ms: 250.123,
      keys: 2,
      ranges: 1,
      tablets: 2,
      files: 4,
      rowsScanned: 900,
      blocksInMemory: 7,
      blocksNotInMemory: 8,
      waitsForDisk: 1,
      diskMs: 99.5,
      queuedMs: 0.25,
      filter: 'chain,valueRegex,condition,passAll',
    },
  ]);
  assert.equal(metrics.get('calls.slow'), 1);
});

test('slow calls in excess are counted and not logged; health watches are never slow; 0 switches slow calls off', () => {
  const { log, warnings, clock, metrics } = callLog({ accessLog: false, slowMs: 1 });
  for (let i = 0; i < 500; i++) log.ended(call(5));
  log.ended(call(1e9, {}, '/grpc.health.v1.Health/Watch'));
  assert.equal(warnings.length, 10);
  assert.equal(metrics.get('calls.slow'), 500);
  clock.advance(1000);
  log.ended(call(5));
  assert.deepEqual([warnings.length, warnings.at(-1)?.['slowCallsNotTold']], [11, 490]);
  const off = callLog({ accessLog: false, slowMs: 0 });
  off.log.ended(call(1e9));
  assert.deepEqual([off.warnings, off.log.isOn], [[], false]);
});

test('few kinds of a filter are logged, whatever its size', () => {
  const { log, warnings } = callLog({ accessLog: false, slowMs: 1 });
  const wide = { kind: 'interleave', filters: Array.from({ length: 100_000 }, () => ({ kind: 'passAll' })) };
  let deep: { kind: string; filters?: object[] } = { kind: 'passAll' };
  for (let i = 0; i < 10_000; i++) deep = { kind: 'chain', filters: [deep] };
  for (const filter of [wide, deep]) log.ended(call(5, { filter }));
  for (const fields of warnings) assert.ok(String(fields['filter']).length < 100);
});
