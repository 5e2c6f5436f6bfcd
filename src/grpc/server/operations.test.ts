/** Long-running operations of the API over two front doors of one database, and over its restart. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  create,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { apiServer } from '../fixtures.ts';
import { testEnv } from '../../../test/raw-server.ts';
import { Code, unavailable } from '../../base/index.ts';
import { Client } from '../../client/index.ts';
import { type Env, LocalTransport, type LockService, MemoryFileSystem } from '../../env/index.ts';
import { LIMITS, type TableSchema } from '../../model/index.ts';
import { openLocalLockService } from '../../platform/index.ts';
import type { OperationStore, Service } from '../../service/index.ts';
import { BigtableTableAdmin } from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { TableSchema as TableMessageSchema } from '../generated/google/bigtable/admin/v2/table_pb.ts';
import { Operations } from '../generated/google/longrunning/operations_pb.ts';
import { registerCloudApi } from './cloud-api.ts';

const TABLE = 'projects/p/instances/i/tables/t';
const { getOperation, waitOperation, cancelOperation, deleteOperation, listOperations } = Operations.method;

interface Door {
  ask<I extends DescMethod['input'], O extends DescMethod['output']>(
    method: DescMethod & { readonly input: I; readonly output: O },
    request: MessageInitShape<I>,
  ): Promise<{ readonly code: number; readonly message: string; readonly answer: MessageShape<O> }>;
  close(): Promise<void>;
}

/** A front door of its own process, whose one table is in a variable. */
async function openDoor(
  lockService: LockService,
  change?: (operations: OperationStore) => OperationStore,
): Promise<Door> {
  const env = testEnv();
  const clientEnv = { ...env, lockService, transport: new LocalTransport(env.clock) } as unknown as Env;
  const client = await Client.open({ env: clientEnv, limits: LIMITS.default });
  let table: TableSchema = {
    name: TABLE,
    id: '00000010',
    granularity: 'millis',
    families: {},
    deletionProtection: false,
  };
  const service: Partial<Service> = {
    operations: change?.(client.operations) ?? client.operations,
    getTable: async () => table,
    updateTable: async (_context, _name, { deletionProtection = false }) => (table = { ...table, deletionProtection }),
  };
  const wire = await apiServer(env, (server) => void registerCloudApi(server, service as Service, env));
  return {
    ask: async (method, request) => {
      const bytes = Buffer.from(toBinary(method.input, create(method.input, request)));
      const { code, message, messages } = await wire.call(`/${method.parent.typeName}/${method.name}`, [bytes]);
      return { code, message, answer: fromBinary(method.output, messages[0] ?? Buffer.alloc(0)) };
    },
    close: async () => {
      client.close();
      await wire.close();
    },
  };
}

const protect = (door: Door, deletionProtection: boolean) =>
  door.ask(BigtableTableAdmin.method.updateTable, {
    table: { name: TABLE, deletionProtection },
    updateMask: { paths: ['deletion_protection'] },
  });

describe('an operation that one front door has answered', () => {
  test('is found through another one, and after a restart', async () => {
    const fileSystem = new MemoryFileSystem();
    const lockService = await openLocalLockService(fileSystem);
    const [first, second] = [await openDoor(lockService), await openDoor(lockService)];
    const made = await protect(first, true);
    const { name } = made.answer;
    assert.equal(made.code, Code.OK);
    assert.ok(name.startsWith(`operations/${TABLE}/operations/`), name);
    for (const door of [first, second]) {
      for (const method of [getOperation, waitOperation]) {
        const { answer } = await door.ask(method as typeof getOperation, { name });
        assert.deepEqual(answer, made.answer);
        const { result } = answer;
        assert.ok(result.case === 'response');
        assert.equal(anyUnpack(result.value, TableMessageSchema)?.deletionProtection, true);
      }
      const { answer } = await door.ask(listOperations, { name: `operations/${TABLE}` });
      assert.deepEqual(answer.operations, [made.answer]);
      assert.equal((await door.ask(cancelOperation, { name })).code, Code.OK);
    }
    assert.equal((await second.ask(deleteOperation, { name })).code, Code.OK);
    for (const door of [first, second])
      for (const method of [getOperation, waitOperation, cancelOperation, deleteOperation] as (typeof getOperation)[]) {
        const { code, message } = await door.ask(method, { name });
        assert.equal(code, Code.NOT_FOUND);
        assert.match(message, /operation ".*" is unknown/);
      }
    const kept = (await protect(second, false)).answer;
    for (const door of [first, second]) await door.close();
    const third = await openDoor(await openLocalLockService(fileSystem.crash('nothing')));
    assert.deepEqual((await third.ask(getOperation, { name: kept.name })).answer, kept);
    await third.close();
  });

  test('is listed page by page', async () => {
    const door = await openDoor(await openLocalLockService(new MemoryFileSystem()));
    const made: string[] = [];
    for (let i = 0; i < 40; i++) made.push((await protect(door, i % 2 === 0)).answer.name);
    const listed: string[] = [];
    const sizes: number[] = [];
    for (let pageToken = ''; ; ) {
      const { answer } = await door.ask(listOperations, { name: 'operations', pageToken });
      listed.push(...answer.operations.map(({ name }) => name));
      sizes.push(answer.operations.length);
      pageToken = answer.nextPageToken;
      if (pageToken === '') break;
    }
    assert.deepEqual([listed, sizes], [made.sort(), [32, 8]]);
    assert.equal((await door.ask(listOperations, { name: 'operations', pageSize: 3 })).answer.operations.length, 3);
    for (const wrong of [{ pageSize: -1 }, { pageToken: Buffer.from('elsewhere').toString('base64url') }])
      assert.equal((await door.ask(listOperations, { name: 'operations', ...wrong })).code, Code.INVALID_ARGUMENT);
    await door.close();
  });

  test('whose keeping fails is answered: its change stands', async () => {
    const door = await openDoor(await openLocalLockService(new MemoryFileSystem()), (operations) => ({
      keep: () => Promise.reject(unavailable('the lock service is away')),
      find: operations.find.bind(operations),
      list: operations.list.bind(operations),
      forget: operations.forget.bind(operations),
    }));
    const { code, answer } = await protect(door, true);
    assert.deepEqual([code, answer.done], [Code.OK, true]);
    assert.equal((await door.ask(BigtableTableAdmin.method.getTable, { name: TABLE })).answer.deletionProtection, true);
    assert.equal((await door.ask(getOperation, { name: answer.name })).code, Code.NOT_FOUND);
    await door.close();
  });
});
