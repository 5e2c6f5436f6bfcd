import assert from 'node:assert/strict';
import * as http2 from 'node:http2';
import { after, before, describe, test } from 'node:test';
import {
  create,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { anyUnpack, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { Code } from '../../base/index.ts';
import { Client } from '../../client/index.ts';
import { type Env, LocalTransport, MemoryLockService } from '../../env/index.ts';
import { LIMITS, type TableSchema } from '../../model/index.ts';
import type { InstanceService, OperationStore, ResourceStore, Service } from '../../service/index.ts';
import { apiServer } from '../fixtures.ts';
import { testEnv } from '../../../test/raw-server.ts';
import { systemClock } from '../../platform/index.ts';
import { Control } from '../generated/edubba/v1/control_pb.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import {
  BigtableTableAdmin,
  UpdateTableMetadataSchema,
} from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { TableSchema as TableMessageSchema } from '../generated/google/bigtable/admin/v2/table_pb.ts';
import { Bigtable } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { Operations, type OperationSchema } from '../generated/google/longrunning/operations_pb.ts';
import {
  Health as HealthService,
  HealthCheckResponse_ServingStatus as Serving,
} from '../generated/grpc/health/v1/health_pb.ts';
import { ServerReflection } from '../generated/grpc/reflection/v1/reflection_pb.ts';
import { ServerReflection as ServerReflectionAlpha } from '../generated/grpc/reflection/v1alpha/reflection_pb.ts';
import { registerCloudApi } from './cloud-api.ts';
import type { Health } from './health.ts';

const API = [Bigtable, BigtableTableAdmin, BigtableInstanceAdmin];
const METHODS: readonly DescMethod[] = API.flatMap((service): readonly DescMethod[] => service.methods);
const IMPLEMENTED = new Set([
  'GetMemoryLayer',
  'ListMemoryLayers',
  'UpdateMemoryLayer',
  'ListHotTablets',
  'ReadRows',
  'SampleRowKeys',
  'GenerateInitialChangeStreamPartitions',
  'ReadChangeStream',
  'MutateRow',
  'MutateRows',
  'CheckAndMutateRow',
  'PingAndWarm',
  'GetClientConfiguration',
  'OpenTable',
  'OpenAuthorizedView',
  'OpenMaterializedView',
  'ReadModifyWriteRow',
  'CreateTable',
  'ListTables',
  'GetTable',
  'UpdateTable',
  'DeleteTable',
  'UndeleteTable',
  'ModifyColumnFamilies',
  'DropRowRange',
  'GenerateConsistencyToken',
  'CheckConsistency',
  'CreateInstance',
  'GetInstance',
  'ListInstances',
  'UpdateInstance',
  'PartialUpdateInstance',
  'DeleteInstance',
  'CreateCluster',
  'GetCluster',
  'ListClusters',
  'UpdateCluster',
  'PartialUpdateCluster',
  'DeleteCluster',
  'CreateAppProfile',
  'GetAppProfile',
  'ListAppProfiles',
  'UpdateAppProfile',
  'DeleteAppProfile',
  'CreateLogicalView',
  'GetLogicalView',
  'ListLogicalViews',
  'UpdateLogicalView',
  'DeleteLogicalView',
  'CreateMaterializedView',
  'GetMaterializedView',
  'ListMaterializedViews',
  'UpdateMaterializedView',
  'DeleteMaterializedView',
  'CreateAuthorizedView',
  'GetAuthorizedView',
  'ListAuthorizedViews',
  'UpdateAuthorizedView',
  'DeleteAuthorizedView',
  'CreateSchemaBundle',
  'GetSchemaBundle',
  'ListSchemaBundles',
  'UpdateSchemaBundle',
  'DeleteSchemaBundle',
  'CreateBackup',
  'CopyBackup',
  'GetBackup',
  'ListBackups',
  'UpdateBackup',
  'DeleteBackup',
  'RestoreTable',
  'GetIamPolicy',
  'SetIamPolicy',
  'TestIamPermissions',
]);
const TABLE = 'projects/p/instances/i/tables/t';

/**
 * A service with no storage behind it, whose one table is a schema in a variable: requests that reach it have passed
 * the API's own checks.
 */
class OneTable implements Partial<Service> {
  schema: TableSchema = { name: TABLE, id: '00000001', granularity: 'millis', families: {}, deletionProtection: false };
  others: TableSchema[] = [];
  operations: OperationStore = undefined as never;
  instances: InstanceService = undefined as never;
  resources: ResourceStore = undefined as never;

  async getTable(): Promise<TableSchema> {
    return this.schema;
  }

  async updateTable(
    _context: unknown,
    _name: string,
    change: Parameters<Service['updateTable']>[2],
  ): Promise<TableSchema> {
    const { extra, deletionProtection, changeStream } = change;
    this.schema = {
      ...this.schema,
      ...(extra && { extra }),
      ...(changeStream && { changeStream: changeStream === 'none' ? undefined : changeStream }),
      deletionProtection: deletionProtection ?? this.schema.deletionProtection,
    };
    return this.schema;
  }

  async listTables(_context: unknown, prefix: string): Promise<readonly TableSchema[]> {
    return [this.schema, ...this.others]
      .filter((table) => table.name.startsWith(prefix))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }
}

describe('the Cloud API', () => {
  const env = testEnv();
  const service = new OneTable();
  let wire: Awaited<ReturnType<typeof apiServer>>;
  let health: Health;

  before(async () => {
    const lockService = new MemoryLockService();
    const clientEnv = { ...env, lockService, transport: new LocalTransport(env.clock) } as unknown as Env;
    const client = await Client.open({ env: clientEnv, limits: LIMITS.default });
    service.operations = client.operations;
    service.instances = client.instances;
    service.resources = client.resources;
    wire = await apiServer(env, (server) => {
      ({ health } = registerCloudApi(server, service as unknown as Service, env));
    });
  });

  after(async () => {
    await wire.close();
  });

  const pathOf = (method: DescMethod): string => `/${method.parent.typeName}/${method.name}`;

  async function ask<I extends DescMethod['input'], O extends DescMethod['output']>(
    method: DescMethod & { readonly input: I; readonly output: O },
    request: MessageInitShape<I>,
  ): Promise<{ code: number; message: string; answer: MessageShape<O> }> {
    const { code, message, messages } = await wire.call(pathOf(method), [
      Buffer.from(toBinary(method.input, create(method.input, request))),
    ]);
    return { code, message, answer: fromBinary(method.output, messages[0] ?? Buffer.alloc(0)) };
  }

  test('has 84 calls', () => assert.equal(METHODS.length, 84));

  /** Each wrong on the wire, whatever the message's fields are. */
  const malformed: readonly [string, Buffer][] = [
    ['a length that runs over the end', Buffer.from([0x0a, 0x05, 0x61])],
    ['field number 0', Buffer.from([0x00, 0x01])],
    ['a tag cut off', Buffer.from([0x8a])],
    ['a group without end', Buffer.from([0xa3, 0x06, 0x08, 0x01])],
    ['wire type 7', Buffer.from([0xa7, 0x06, 0x00])],
    ['a varint without end', Buffer.from([0xa0, 0x06, 0xff, 0xff])],
  ];
  for (const [name, bytes] of malformed) {
    test(`answers ${name} with INVALID_ARGUMENT in every one of them`, async () => {
      const methods: readonly DescMethod[] = [...METHODS, ...Control.methods];
      const outcomes = await Promise.all(methods.map((method) => wire.call(pathOf(method), [bytes])));
      assert.deepEqual(
        outcomes
          .map(({ code, message }, i) =>
            code === Code.INVALID_ARGUMENT ? '' : `${methods[i]?.name}: ${code} ${message}`,
          )
          .filter((wrong) => wrong !== ''),
        [],
      );
    });
  }

  test('names the call where it is not implemented', async () => {
    const missing = METHODS.filter((method) => !IMPLEMENTED.has(method.name));
    assert.deepEqual([METHODS.length, missing.length], [84, 7]);
    const calls = missing.flatMap((method) =>
      [[Buffer.alloc(0)], ...(method.methodKind === 'bidi_streaming' ? [[]] : [])].map((messages) => ({
        method,
        messages,
      })),
    );
    await Promise.all(
      calls.map(async ({ method, messages }) => {
        const { code, message } = await wire.call(pathOf(method), messages);
        assert.deepEqual(
          [code, message],
          [Code.UNIMPLEMENTED, `${pathOf(method).slice(1)} is not implemented by Edubba`],
        );
      }),
    );
  });

  test('clients learn that there are no sessions', async () => {
    const { getClientConfiguration } = Bigtable.method;
    const { answer } = await ask(getClientConfiguration, { instanceName: 'projects/p/instances/i', appProfileId: 'a' });
    assert.deepEqual(
      [answer.sessionConfiguration?.sessionLoad, answer.polling],
      [0, { case: 'stopPolling', value: true }],
    );
    for (const instanceName of ['', 'i', 'projects/p', 'projects/p/instances/i/tables/t']) {
      const { code, message } = await ask(getClientConfiguration, { instanceName });
      assert.equal(code, Code.INVALID_ARGUMENT);
      assert.match(message, /^instance_name .* must be projects\/PROJECT\/instances\/INSTANCE$/);
    }
    for (const method of [
      Bigtable.method.openTable,
      Bigtable.method.openAuthorizedView,
      Bigtable.method.openMaterializedView,
    ])
      for (const messages of [[], [Buffer.alloc(0)], [Buffer.alloc(0), Buffer.alloc(0)]]) {
        const { code, message } = await wire.call(pathOf(method), messages);
        assert.equal(code, Code.FAILED_PRECONDITION);
        assert.match(message, new RegExp(`^${method.name}: Edubba has no sessions`));
      }
  });

  test('a path of a mask is an existing field, and not a property that every object has', async () => {
    for (const path of ['__proto__', 'constructor', 'toString', 'name']) {
      const modifications = [{ id: 'f', mod: { case: 'update' as const, value: {} }, updateMask: { paths: [path] } }];
      const { code, message } = await ask(BigtableTableAdmin.method.modifyColumnFamilies, {
        name: TABLE,
        modifications,
      });
      assert.deepEqual(
        [code, message],
        [Code.INVALID_ARGUMENT, `update_mask: "${path}" is not one of gc_rule, value_type`],
      );
      const table = await ask(BigtableTableAdmin.method.updateTable, {
        table: { name: TABLE },
        updateMask: { paths: [`x${path}`] },
      });
      assert.equal(table.code, Code.INVALID_ARGUMENT);
    }
  });

  test('survives any bytes in any call', async () => {
    const bytes = fc.uint8Array({ maxLength: 80 }).map((array) => Buffer.from(array));
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...METHODS), bytes, async (method, request) => {
        const { code } = await wire.call(pathOf(method), [request]);
        // FAILED_PRECONDITION and INTERNAL are what the table-less service of this test makes of a request that is
        // well-formed
        const allowed: number[] = [
          Code.OK,
          Code.INVALID_ARGUMENT,
          Code.UNIMPLEMENTED,
          Code.NOT_FOUND,
          ...(IMPLEMENTED.has(method.name) ? [Code.INTERNAL] : []),
          ...(/^Open|Iam|ChangeStream/.test(method.name) ? [Code.FAILED_PRECONDITION] : []),
        ];
        assert.ok(allowed.includes(code), `${pathOf(method)}: ${code}`);
      }),
      { numRuns: 300 },
    );
    assert.equal((await ask(HealthService.method.check, {})).answer.status, Serving.SERVING);
  });

  test('refuses messages of megabytes in calls that carry no user data', async () => {
    const { code } = await wire.call(pathOf(BigtableTableAdmin.method.createTable), [Buffer.alloc(5_000_000)]);
    assert.equal(code, Code.RESOURCE_EXHAUSTED);
  });

  test('refuses messages above 256 MiB in any, by what they say their length is', async () => {
    const session = http2.connect(`http://127.0.0.1:${wire.port}`);
    const stream = session.request({
      ':method': 'POST',
      ':path': pathOf(Bigtable.method.mutateRow),
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const status = new Promise((resolve) => {
      stream.on('response', (headers) => headers['grpc-status'] !== undefined && resolve(headers['grpc-status']));
      stream.on('trailers', (headers) => resolve(headers['grpc-status']));
    });
    stream.write(Buffer.from([0, 0x10, 0x00, 0x00, 0x01, 0x00]));
    stream.resume();
    assert.equal(Number(await status), Code.RESOURCE_EXHAUSTED);
    session.destroy();
  });

  test('PingAndWarm answers', async () =>
    assert.equal((await ask(Bigtable.method.pingAndWarm, { name: 'projects/p/instances/i' })).code, Code.OK));

  test('views are refused with a message', async () => {
    for (const method of [
      Bigtable.method.readRows,
      Bigtable.method.sampleRowKeys,
    ] as (typeof Bigtable.method.readRows)[]) {
      const authorized = await ask(method, { authorizedViewName: 'x/views/v' });
      assert.equal(authorized.code, Code.INVALID_ARGUMENT);
      assert.match(authorized.message, /^authorized_view_name "x\/views\/v" must be projects\/PROJECT/);
      const materialized = await ask(method, { materializedViewName: 'm' });
      assert.equal(materialized.code, Code.INVALID_ARGUMENT);
      assert.match(materialized.message, /^materialized_view_name "m" must be projects\/PROJECT/);
    }
    const name = `${TABLE}/authorizedViews/v`;
    for (const [view, code] of [
      ['v', Code.INVALID_ARGUMENT],
      [name, Code.NOT_FOUND],
    ] as const) {
      assert.equal((await ask(Bigtable.method.mutateRow, { authorizedViewName: view })).code, code);
      assert.equal((await ask(Bigtable.method.mutateRows, { authorizedViewName: view })).code, code);
    }
  });

  const admin = BigtableTableAdmin.method;
  const refused: readonly [string, () => Promise<{ code: number }>][] = [
    ['CreateTable without parent', () => ask(admin.createTable, { tableId: 't' })],
    [
      'CreateTable with an unknown granularity',
      () => ask(admin.createTable, { parent: 'projects/p/instances/i', tableId: 't', table: { granularity: 77 as 1 } }),
    ],
    ['ListTables without parent', () => ask(admin.listTables, {})],
    [
      'ListTables with a page of its own making',
      () => ask(admin.listTables, { parent: 'projects/p/instances/i', pageToken: 'xyz' }),
    ],
    [
      'ListTables with a negative page',
      () => ask(admin.listTables, { parent: 'projects/p/instances/i', pageSize: -1 }),
    ],
    ['ModifyColumnFamilies with nothing', () => ask(admin.modifyColumnFamilies, { name: TABLE })],
    [
      'a modification without content',
      () => ask(admin.modifyColumnFamilies, { name: TABLE, modifications: [{ id: 'cf' }] }),
    ],
    [
      'a drop that is false',
      () =>
        ask(admin.modifyColumnFamilies, {
          name: TABLE,
          modifications: [{ id: 'cf', mod: { case: 'drop', value: false } }],
        }),
    ],
    [
      'an update of an unknown field',
      () =>
        ask(admin.modifyColumnFamilies, {
          name: TABLE,
          modifications: [{ id: 'cf', mod: { case: 'update', value: {} }, updateMask: { paths: ['stats'] } }],
        }),
    ],
    ['DropRowRange without target', () => ask(admin.dropRowRange, { name: TABLE })],
    [
      'DropRowRange with an empty prefix',
      () => ask(admin.dropRowRange, { name: TABLE, target: { case: 'rowKeyPrefix', value: Buffer.alloc(0) } }),
    ],
    ['UpdateTable without table', () => ask(admin.updateTable, { updateMask: { paths: ['deletion_protection'] } })],
    ['UpdateTable without mask', () => ask(admin.updateTable, { table: { name: TABLE } })],
    [
      'UpdateTable of an unknown field',
      () => ask(admin.updateTable, { table: { name: TABLE }, updateMask: { paths: ['color'] } }),
    ],
  ];
  for (const [name, call] of refused)
    test(`${name} is INVALID_ARGUMENT`, async () => assert.equal((await call()).code, Code.INVALID_ARGUMENT));

  test('UpdateTable changes what it can, keeps what it does not act upon, and says what it cannot change', async () => {
    const update = (table: MessageInitShape<typeof TableMessageSchema>, paths: string[]) =>
      ask(admin.updateTable, { table: { name: TABLE, ...table }, updateMask: { paths } });
    const first = await update(
      { deletionProtection: true, changeStreamConfig: { retentionPeriod: { seconds: 86_400n } } },
      ['deletion_protection', 'change_stream_config.retention_period'],
    );
    assert.equal(first.code, Code.OK);
    assert.equal(first.answer.done, true);
    const table = anyUnpack(
      first.answer.result.value as MessageShape<typeof OperationSchema>['metadata'] & object,
      TableMessageSchema,
    );
    assert.equal(table?.deletionProtection, true);
    assert.equal(table?.changeStreamConfig?.retentionPeriod?.seconds, 86_400n);
    const metadata = first.answer.metadata && anyUnpack(first.answer.metadata, UpdateTableMetadataSchema);
    assert.equal(metadata?.name, TABLE);
    const key = { kind: { case: 'bytesType', value: { encoding: { encoding: { case: 'raw', value: {} } } } } } as const;
    const encoding = { encoding: { case: 'singleton', value: {} } } as const;
    await update({ rowKeySchema: { fields: [{ fieldName: 'f', type: key }], encoding } }, ['row_key_schema']);
    const kept = (await ask(admin.getTable, { name: TABLE })).answer;
    assert.deepEqual(
      [kept.deletionProtection, kept.rowKeySchema?.fields.length, kept.changeStreamConfig?.retentionPeriod?.seconds],
      [true, 1, 86_400n],
    );
    const modifications = [{ id: 'f', mod: { case: 'create' as const, value: {} } }];
    const clash = await ask(admin.modifyColumnFamilies, { name: TABLE, modifications });
    assert.equal(clash.code, Code.INVALID_ARGUMENT);
    assert.match(clash.message, /field "f" has the name of a column family/);
    await update({}, ['change_stream_config']);
    assert.equal((await ask(admin.getTable, { name: TABLE })).answer.changeStreamConfig, undefined);
    const families = await update({}, ['column_families']);
    assert.deepEqual(
      [families.code, families.message],
      [Code.UNIMPLEMENTED, 'update_mask: UpdateTable cannot change column_families'],
    );
  });

  test('operations can be requested again', async () => {
    const made = await ask(admin.updateTable, {
      table: { name: TABLE },
      updateMask: { paths: ['deletion_protection'] },
    });
    const { name } = made.answer;
    const calls = [
      Operations.method.getOperation,
      Operations.method.waitOperation,
      Operations.method.cancelOperation,
      Operations.method.deleteOperation,
    ];
    const [get, wait, cancel, remove] = calls as (typeof Operations.method.getOperation)[];
    assert.ok(get && wait && cancel && remove);
    for (const method of [get, wait]) assert.deepEqual((await ask(method, { name })).answer, made.answer);
    const listed = (await ask(Operations.method.listOperations, { name: `operations/${TABLE}` })).answer;
    assert.ok(listed.operations.some((operation) => operation.name === name));
    assert.equal(
      (await ask(Operations.method.listOperations, { name: 'operations/projects/other' })).answer.operations.length,
      0,
    );
    assert.equal((await ask(cancel, { name })).code, Code.OK);
    assert.equal((await ask(remove, { name })).code, Code.OK);
    for (const method of [get, cancel, remove]) assert.equal((await ask(method, { name })).code, Code.NOT_FOUND);
  });

  test('tables are listed page by page', async () => {
    service.others = Array.from({ length: 6 }, (_, i) => ({ ...service.schema, name: `${TABLE}${i}` }));
    const names: string[] = [];
    for (let pageToken = '', pages = 0; pages === 0 || pageToken !== ''; pages++) {
      const { answer } = await ask(admin.listTables, { parent: 'projects/p/instances/i', pageSize: 3, pageToken });
      assert.ok(answer.tables.length <= 3);
      assert.ok(
        answer.tables.every((table) => table.granularity === 0),
        'names alone',
      );
      names.push(...answer.tables.map((table) => table.name));
      pageToken = answer.nextPageToken;
    }
    assert.deepEqual(names, [TABLE, ...Array.from({ length: 6 }, (_, i) => `${TABLE}${i}`)]);
    assert.equal(
      (await ask(admin.listTables, { parent: 'projects/p/instances/i', view: 2 })).answer.tables[0]?.granularity,
      1,
    );
    assert.equal((await ask(admin.listTables, { parent: 'projects/p/instances/other' })).answer.tables.length, 0);
    service.others = [];
  });

  test('reflection lists the services, their files and their types, in both packages', async () => {
    for (const service of [ServerReflection, ServerReflectionAlpha]) {
      const method = service.method.serverReflectionInfo as typeof ServerReflection.method.serverReflectionInfo;
      const answer = async (messageRequest: MessageShape<typeof method.input>['messageRequest']) =>
        (await ask(method, { host: 'h', messageRequest })).answer.messageResponse;
      const list = await answer({ case: 'listServices', value: '' });
      assert.ok(list.case === 'listServicesResponse');
      const names = list.value.service.map((each) => each.name);
      for (const each of [...API, Control, Operations, HealthService, ServerReflection, ServerReflectionAlpha])
        assert.ok(names.includes(each.typeName));
      const symbols = [
        Bigtable.typeName,
        'google.bigtable.v2.Bigtable.ReadRows',
        'google.bigtable.v2.RowFilter.Chain',
        'google.bigtable.v2.RowFilter.chain',
        'google.bigtable.admin.v2.Table.View',
      ];
      for (const symbol of symbols) {
        const file = await answer({ case: 'fileContainingSymbol', value: symbol });
        assert.ok(file.case === 'fileDescriptorResponse', symbol);
        const name = fromBinary(FileDescriptorProtoSchema, file.value.fileDescriptorProto[0] ?? Buffer.alloc(0)).name;
        assert.match(name, /^google\/bigtable\/(admin\/)?v2\/\w+\.proto$/);
        assert.equal((await answer({ case: 'fileByFilename', value: name })).case, 'fileDescriptorResponse');
      }
      const http = await answer({
        case: 'fileContainingExtension',
        value: {
          $typeName: 'grpc.reflection.v1.ExtensionRequest',
          containingType: 'google.protobuf.MethodOptions',
          extensionNumber: 72295728,
        },
      });
      assert.equal(http.case, 'fileDescriptorResponse');
      const numbers = await answer({ case: 'allExtensionNumbersOfType', value: 'google.protobuf.MethodOptions' });
      assert.ok(numbers.case === 'allExtensionNumbersResponse' && numbers.value.extensionNumber.includes(72295728));
      for (const unknown of [
        { case: 'fileByFilename', value: 'no.proto' },
        { case: 'fileContainingSymbol', value: 'no.Such' },
        { case: 'allExtensionNumbersOfType', value: 'no.Such' },
      ] as const) {
        const error = await answer(unknown);
        assert.ok(error.case === 'errorResponse' && error.value.errorCode === Code.NOT_FOUND);
      }
      assert.equal((await answer({ case: undefined })).case, 'errorResponse');
    }
  });

  // last: it stops the health of the server that all tests share
  test('health says SERVING until the server stops, to checks and to watchers', async () => {
    assert.equal(
      (await ask(HealthService.method.check, { service: Bigtable.typeName })).answer.status,
      Serving.SERVING,
    );
    assert.equal((await ask(HealthService.method.check, { service: 'no.Such' })).code, Code.NOT_FOUND);
    const listed = (await ask(HealthService.method.list, {})).answer.statuses;
    assert.equal(listed['']?.status, Serving.SERVING);
    const asIs = (bytes: Buffer): Buffer => bytes;
    const request = Buffer.from(
      toBinary(HealthService.method.watch.input, create(HealthService.method.watch.input, { service: '' })),
    );
    const watch = wire.client.makeServerStreamRequest(pathOf(HealthService.method.watch), asIs, asIs, request);
    const leaving = wire.client.makeServerStreamRequest(pathOf(HealthService.method.watch), asIs, asIs, request);
    leaving.on('error', () => {});
    const seen: Serving[] = [];
    const ended = new Promise((resolve) => watch.on('end', resolve));
    watch.on('data', (bytes: Buffer) => seen.push(fromBinary(HealthService.method.watch.output, bytes).status));
    while (seen.length === 0) await systemClock.yield();
    leaving.cancel();
    assert.deepEqual(seen, [Serving.SERVING]);
    health.stop();
    await ended;
    assert.deepEqual(seen, [Serving.SERVING, Serving.NOT_SERVING]);
    assert.equal((await ask(HealthService.method.check, {})).answer.status, Serving.NOT_SERVING);
    assert.equal(
      (await ask(HealthService.method.watch, { service: 'no.Such' })).answer.status,
      Serving.SERVICE_UNKNOWN,
    );
  });
});
