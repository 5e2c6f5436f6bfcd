import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { goldenFile } from '../../test/golden/golden-file.ts';
import { BigtableError, Code, CorruptionError, unavailable } from '../base/index.ts';
import { ByteBudget, fromPlainError, LocalTransport, ManualClock, requestContext, toPlainError } from '../env/index.ts';
import type { MasterCalls } from './messages.ts';
import { decodeOperationFile, encodeOperationFile, operationPath } from './operation-file.ts';
import {
  callHandler,
  callMaster,
  checkProtocol,
  decodeCallablePeer,
  decodePeerFile,
  encodePeerFile,
  type Handlers,
  isNotServing,
  logPathOf,
  notServing,
  PROTOCOL,
  type ProtocolVersion,
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

describe('files of operations', () => {
  const name = `operations/projects/p/instances/i/tables/t/operations/${'7f'.repeat(17)}`;
  const file = { name, madeMicros: 1_700_000_000_000_000.5, contents: Buffer.from('abc') };

  test('are read as they were written, by every version', () => {
    const written = encodeOperationFile(file);
    const read = decodeOperationFile(goldenFile('operation-file-v1.bin', written));
    assert.deepEqual(read && { ...read, contents: Buffer.from(read.contents) }, file);
    assert.deepEqual(goldenFile('operation-file-v1.bin'), written);
    assert.deepEqual([operationPath(0), operationPath(127)], ['operations/00', 'operations/7f']);
  });

  test('are free where they are empty, and say so where they cannot be read', () => {
    assert.equal(decodeOperationFile(Buffer.alloc(0)), undefined);
    assert.throws(() => decodeOperationFile(Buffer.from('\xff\xff', 'latin1')), { code: Code.INVALID_ARGUMENT });
  });
});

describe('peers', () => {
  test('describe themselves in their file', () => {
    const peer = { name: 'n', address: 'a:1', protocol: PROTOCOL };
    assert.deepEqual(decodePeerFile('servers/n', encodePeerFile(peer)), peer);
    assert.throws(() => decodePeerFile('servers/n', Buffer.from('{}')), CorruptionError);
    assert.equal(logPathOf('n'), 'logs/n');
  });

  test('of another version, or with features not known here, are refused with the versions of both sides', () => {
    checkProtocol('server n', PROTOCOL);
    assert.throws(
      () => checkProtocol('server n', { ...PROTOCOL, version: 2 }),
      /^BigtableError: the versions differ: .* server n speaks version 2 .* this program version 1 with features 0x0$/,
    );
    assert.throws(
      () => checkProtocol('server n', { version: 1, requires: 5, knows: 7 }),
      /server n requires features 0x5: .* server n speaks version 1 with features 0x7, this program version 1 with/,
    );
  });

  test('that know a feature talk to those that require it, and to those before it', () => {
    const before = { version: 1, requires: 0, knows: 0 };
    const first = { version: 1, requires: 0, knows: 2 ** 40 };
    const second = { version: 1, requires: 2 ** 40, knows: 2 ** 40 };
    const talk = (a: ProtocolVersion, b: ProtocolVersion): void => {
      checkProtocol('b', b, a);
      checkProtocol('a', a, b);
    };
    talk(first, before);
    talk(first, second);
    // whichever of the two calls the other
    assert.throws(() => checkProtocol('second', second, before), /second requires features 0x10000000000/);
    assert.throws(() => checkProtocol('before', before, second), /this program requires features 0x10000000000/);
  });

  test('write the file that earlier versions read, and read those of earlier and of later ones', () => {
    const peer = { name: '54352d7f6ac202360768dd4c75560a43', address: 'a:1', protocol: PROTOCOL };
    const written = encodePeerFile(peer);
    assert.deepEqual(written, goldenFile('peer-file-v1-knows.json', written));
    const later = { format: 1, requires: 0, ...peer, protocol: { ...PROTOCOL, offers: 4 }, zone: 'b' };
    for (const contents of [written, goldenFile('peer-file-v1.json'), Buffer.from(JSON.stringify(later))])
      for (const path of ['master', `servers/${peer.name}`]) assert.deepEqual(decodeCallablePeer(path, contents), peer);
  });
});
