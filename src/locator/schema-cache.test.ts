import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryLockService } from '../env/index.ts';
import { SchemaCache } from './schema-cache.ts';

test('a cache of schemas that is started twice would watch twice, and is a bug', async () => {
  const schemas = new SchemaCache(new MemoryLockService(), (error) => assert.fail(String(error)));
  await schemas.start();
  await assert.rejects(schemas.start(), /a cache of schemas is started once/);
  schemas.stop();
});
