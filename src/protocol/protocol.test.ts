import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code, CorruptionError, unavailable } from '../base/index.ts';
import { ByteBudget, fromPlainError, LocalTransport, ManualClock, requestContext, toPlainError } from '../env/index.ts';
import type { MasterCalls } from './messages.ts';
import {
  callHandler,
  callMaster,
  checkProtocol,
  decodePeerFile,
  encodePeerFile,
  type Handlers,
  isNotServing,
  logPathOf,
  notServing,
  PROTOCOL,
  readTablet,
} from './index.ts';

const context = requestContext({ budget: new ByteBudget(1000) });

describe('the internal calls', () => {
  test('reach the handler of their name, and errors come back whole', async () => {
    const transport = new LocalTransport(new ManualClock());
    const handlers: Pick<Handlers<MasterCalls>, 'sweep' | 'deleteTable'> = {
      sweep: async () => ({ files: 1, logs: 2 }),
      deleteTable: async ({ name }) => {
        throw new BigtableError(Code.NOT_FOUND, `no ${name}`, { details: { name } });
      },
    };
    await transport.serve('m', callHandler<MasterCalls>(handlers));
    assert.deepEqual(await callMaster(transport, 'm', 'sweep', {}, context), { files: 1, logs: 2 });
    await assert.rejects(callMaster(transport, 'm', 'deleteTable', { name: 't' }, context), {
      code: Code.NOT_FOUND,
      message: 'no t',
      details: { name: 't' },
    });
    await assert.rejects(transport.call('m', 'toString', {}, context), { code: Code.UNIMPLEMENTED });
    await assert.rejects(
      async () => {
        for await (const _ of readTablet(
          transport,
          'm',
          { tableId: '00000010', ranges: [], rowsLimit: 0, reversed: false },
          context,
        ))
          assert.fail();
      },
      { code: Code.UNIMPLEMENTED },
    );
  });

  test('errors as data', () => {
    const error = new BigtableError(Code.ABORTED, 'x', { retry: false, details: { a: 1 } });
    const back = fromPlainError(structuredClone(toPlainError(error)));
    assert.deepEqual([back.code, back.message, back.retry, back.details], [Code.ABORTED, 'x', false, { a: 1 }]);
  });

  test('"not serving" survives being data, and nothing else is taken for it', () => {
    assert.ok(isNotServing(fromPlainError(structuredClone(toPlainError(notServing('00000010', 'r'))))));
    assert.ok(!isNotServing(unavailable('the outcome is unknown')));
  });
});

describe('peers', () => {
  test('describe themselves in their file', () => {
    const peer = { name: 'n', address: 'a:1', protocol: PROTOCOL };
    assert.deepEqual(decodePeerFile('servers/n', encodePeerFile(peer)), peer);
    assert.throws(() => decodePeerFile('servers/n', Buffer.from('{}')), CorruptionError);
    assert.equal(logPathOf('n'), 'logs/n');
  });

  test('of another version, or with features not known here, are refused with a message', () => {
    checkProtocol('server n', PROTOCOL);
    assert.throws(
      () => checkProtocol('server n', { version: 2, requires: 0 }),
      /server n speaks version 2 .* this program 1/,
    );
    assert.throws(() => checkProtocol('server n', { version: 1, requires: 5 }), /server n requires features 0x5/);
  });
});
