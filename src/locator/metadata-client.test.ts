import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AssertionError } from '../base/index.ts';
import {
  ByteBudget,
  LocalTransport,
  ManualClock,
  MemoryLockService,
  Metrics,
  requestContext,
  SeededRandom,
} from '../env/index.ts';
import { type MetadataCommit, metadataKey, type MetadataRow, ROOT_KEY } from '../metadata/index.ts';
import { Locator } from './locator.ts';
import { MetadataClient } from './metadata-client.ts';

const context = requestContext({ budget: new ByteBudget(1024) });
const row: MetadataRow = {
  tableId: '00000010',
  range: { start: '', end: undefined },
  server: undefined,
  epoch: 1,
  version: 1,
  commitId: 'c',
  files: {},
  redo: { epoch: 0, sequence: 0 },
  logs: [],
};

function client(): MetadataClient {
  const clock = new ManualClock();
  const lockService = new MemoryLockService();
  const parts = { clock, transport: new LocalTransport(clock), lockService, random: new SeededRandom(1) };
  const locator = new Locator({ ...parts, metrics: new Metrics() });
  return new MetadataClient({ ...parts, locator, stopped: () => false });
}

const event = { kind: 'created', atMicros: 1 } as const;
const commit = (...rows: MetadataCommit['rows']): MetadataCommit => ({ id: 'c', event, rows });

describe('commits on METADATA', () => {
  test('of no row, or of the root row together with another, are bugs and are not sent', async () => {
    const one = { key: ROOT_KEY, expected: undefined, row };
    const other = { key: metadataKey('00000010', undefined), expected: undefined, row };
    for (const wrong of [commit(), commit(one, other), commit({ ...one, row: undefined })]) {
      await assert.rejects(client().commit([wrong], context), AssertionError);
    }
  });
});
