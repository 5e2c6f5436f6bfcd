import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { create, toBinary } from '@bufbuild/protobuf';
import { Code } from '../../base/index.ts';
import { ByteBudget, CallContext } from '../../env/index.ts';
import type { RpcCall, RpcMethod } from '../../wire/index.ts';
import {
  BigtableTableAdmin,
  ModifyColumnFamiliesRequestSchema,
} from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { MethodTable } from './method-table.ts';

const MIB = 1024 * 1024;
const REQUEST = Buffer.from(
  toBinary(ModifyColumnFamiliesRequestSchema, create(ModifyColumnFamiliesRequestSchema, { name: 't' })),
);

function changeOf(handle: () => Promise<{ name: string }>): (call: RpcCall) => Promise<Buffer> {
  let method: RpcMethod | undefined;
  const table = new MethodTable({ register: (_path, registered) => (method = registered) });
  table.change(BigtableTableAdmin.method.modifyColumnFamilies, handle);
  const registered = method;
  assert.ok(registered?.kind === 'unary');
  return async (call) => Buffer.concat([await registered.handle(call, REQUEST)].flat());
}

function callOf(budget: ByteBudget): RpcCall {
  return { path: '', context: new CallContext({ budget }), header: () => undefined, startMs: 0, addTrailer: () => {} };
}

describe('calls that change something', () => {
  test('have space for their answer afterwards, whatever others reserved meanwhile', async () => {
    const budget = new ByteBudget(4 * MIB);
    const call = callOf(budget);
    const change = changeOf(async () => {
      budget.reservation().force(4 * MIB);
      return { name: 'x'.repeat(100_000) };
    });
    const answer = await change(call);
    assert.ok(answer.length > 100_000);
    assert.ok(
      call.context.reservation.heldBytes >= answer.length,
      `${call.context.reservation.heldBytes} bytes are held for ${answer.length}`,
    );
  });

  test('are refused before they change anything where there is no space for a usual answer', async () => {
    const budget = new ByteBudget(4 * MIB);
    budget.reservation().force(8 * MIB);
    const small = budget.reservation();
    while (small.tryGrow(10_000));
    let isChanged = false;
    const change = changeOf(async () => {
      isChanged = true;
      return { name: 'x' };
    });
    await assert.rejects(change(callOf(budget)), { code: Code.RESOURCE_EXHAUSTED });
    assert.equal(isChanged, false);
  });
});
