/** Opens a session on etcd, closes nothing and has nothing more to do. Arguments: the members. */
import assert from 'node:assert/strict';
import { newPrefix, openAt } from './fixtures.ts';

const service = await openAt(process.argv.slice(2), newPrefix());
assert.equal(service.leaseHolds(await service.openSession()), true);
