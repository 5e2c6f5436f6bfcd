/**
 * Bad requests that only bytes can say, as data: the method, its message by hand, the code of the refusal and what its
 * message must name. The table `t` is that of library-requests.ts, in the instance projects/local/instances/local.
 *
 * Two bounds on one side of a range are not among them: they are a oneof, of which every reader of protobuf sees the
 * last alone.
 */
import { Code } from '../../src/base/index.ts';
import { type FieldValue, message } from './protobuf.ts';

export interface WireRequest {
  readonly name: string;
  readonly path: string;
  readonly bytes: Buffer;
  readonly code: Code;
  readonly says: RegExp;
}

export const INSTANCE = 'projects/local/instances/local';
export const T = `${INSTANCE}/tables/t`;
const BACKUP = `${INSTANCE}/clusters/c/backups/b`;
export const DATA = '/google.bigtable.v2.Bigtable/';
export const ADMIN = '/google.bigtable.admin.v2.BigtableTableAdmin/';
const INSTANCES = '/google.bigtable.admin.v2.BigtableInstanceAdmin/';
const OPERATOR = '/edubba.v1.Control/';

type Fields = Readonly<Record<number, FieldValue>>;
const { ALREADY_EXISTS, INVALID_ARGUMENT, NOT_FOUND, RESOURCE_EXHAUSTED, UNIMPLEMENTED } = Code;
const NOT_UTF8 = Buffer.from([0x66, 0xff, 0xfe]);

const bad = (
  name: string,
  path: string,
  fields: Fields | Buffer,
  says: RegExp,
  code: Code = INVALID_ARGUMENT,
): WireRequest => ({
  name,
  path,
  bytes: Buffer.isBuffer(fields) ? fields : message(fields),
  code,
  says,
});

export const setCell = (fields: Fields = {}): Buffer =>
  message({ 1: message({ 1: 'f', 2: 'q', 3: 1000, 4: 'v', ...fields }) });
const mutateRow = (fields: Fields): Fields => ({ 1: T, 2: 'refused', 3: [setCell()], ...fields });
const mutated = (mutation: Buffer): Fields => mutateRow({ 3: [setCell(), mutation] });
const read = (fields: Fields): Fields => ({ 1: T, ...fields });
const filtered = (filter: Fields): Fields => read({ 3: message(filter) });
const integer = (value: number | bigint): Buffer => message({ 6: value });

const WRITES: WireRequest[] = [
  bad('a write without a table', `${DATA}MutateRow`, { 2: 'refused', 3: [setCell()] }, /table name ""/),
  bad('a write to half a table name', `${DATA}MutateRow`, mutateRow({ 1: 'projects/local' }), /projects\/PROJECT/),
  bad(
    'a write to a table name that is not UTF-8',
    `${DATA}MutateRow`,
    mutateRow({ 1: NOT_UTF8 }),
    /UTF-8|utf|table name/i,
  ),
  ...(
    [
      ['ReadRows', 5, {}],
      ['SampleRowKeys', 2, {}],
      ['MutateRow', 4, { 2: 'refused', 3: [setCell()] }],
      ['MutateRows', 3, { 2: [message({ 1: 'refused', 2: [setCell()] })] }],
      ['CheckAndMutateRow', 7, { 2: 'refused', 4: [setCell()] }],
      ['ReadModifyWriteRow', 4, { 2: 'refused', 3: [message({ 1: 'f', 2: 'q', 4: 1 })] }],
    ] as const
  ).map(([call, profile, fields]) =>
    bad(
      `an app profile that is not UTF-8, of ${call}`,
      `${DATA}${call}`,
      { 1: T, ...fields, [profile]: NOT_UTF8 },
      /app_profile_id.*UTF-8|not valid for encoding utf-8/,
    ),
  ),
  bad('a warm-up of nothing', `${DATA}PingAndWarm`, {}, /name "" must be projects\/PROJECT\/instances\/INSTANCE/),
  bad('a warm-up of a table', `${DATA}PingAndWarm`, { 1: T }, /name .* must be projects/),
  bad('a write without a row', `${DATA}MutateRow`, { 1: T, 3: [setCell()] }, /row key must not be empty/),
  bad('a mutation of no kind', `${DATA}MutateRow`, mutated(message()), /mutation/i),
  bad('a mutation of a kind to come', `${DATA}MutateRow`, mutated(message({ 99: message() })), /mutation/i),
  bad('a family name that is not UTF-8', `${DATA}MutateRow`, mutated(setCell({ 1: NOT_UTF8 })), /family/),
  bad('a cell without a family', `${DATA}MutateRow`, mutated(setCell({ 1: '' })), /column family ""/),
  bad('a timestamp of -2', `${DATA}MutateRow`, mutated(setCell({ 3: -2 })), /-2/),
  bad(
    'a timestamp of the least int64',
    `${DATA}MutateRow`,
    mutated(setCell({ 3: -(2n ** 63n) })),
    /-9223372036854775808/,
  ),
  bad(
    'an addition without an input',
    `${DATA}MutateRow`,
    mutated(message({ 5: message({ 1: 'sum', 2: message({ 8: 'q' }), 3: message({ 9: 0 }) }) })),
    /input/i,
  ),
  bad(
    'an addition without a timestamp',
    `${DATA}MutateRow`,
    mutated(message({ 5: message({ 1: 'sum', 2: message({ 8: 'q' }), 4: integer(1) }) })),
    /timestamp/i,
  ),
  bad(
    'an addition of text',
    `${DATA}MutateRow`,
    mutated(
      message({ 5: message({ 1: 'sum', 2: message({ 8: 'q' }), 3: message({ 9: 0 }), 4: message({ 3: 'x' }) }) }),
    ),
    /input/i,
  ),
  bad(
    'a state of seven bytes',
    `${DATA}MutateRow`,
    mutated(
      message({ 6: message({ 1: 'sum', 2: message({ 8: 'q' }), 3: message({ 9: 0 }), 4: message({ 8: 'seven b' }) }) }),
    ),
    /8 bytes, not 7/,
  ),
  bad('a batch without entries', `${DATA}MutateRows`, { 1: T }, /at least one entry/),
  bad(
    'a batch of 100,001 entries',
    `${DATA}MutateRows`,
    { 1: T, 2: Array.from({ length: 100_001 }, () => message({ 1: 'refused' })) },
    /100000|100,000/,
  ),
  bad(
    'a batch of 100,001 mutations',
    `${DATA}MutateRows`,
    { 1: T, 2: [0, 1].map((n) => message({ 1: 'refused', 2: new Array(50_000 + n).fill(setCell()) })) },
    /100000|100,000/,
  ),
  bad(
    'a batch of malformed mutations alone to no table',
    `${DATA}MutateRows`,
    { 1: `${INSTANCE}/tables/none`, 2: [message({ 1: 'refused', 2: [message()] })] },
    /tables\/none/,
    NOT_FOUND,
  ),
  bad(
    'a batch of nothing to no table',
    `${DATA}MutateRows`,
    { 1: `${INSTANCE}/tables/none`, 2: [message()] },
    /tables\/none/,
    NOT_FOUND,
  ),
  bad(
    'a batch whose second entry is cut off',
    `${DATA}MutateRows`,
    { 1: T, 2: [message({ 1: 'refused', 2: [setCell()] }), Buffer.from([0x12, 0x7f, 0x61])] },
    /protobuf/,
  ),
  bad('a check without mutations', `${DATA}CheckAndMutateRow`, { 1: T, 2: 'refused' }, /mutations/),
  bad(
    'a check by an empty chain',
    `${DATA}CheckAndMutateRow`,
    { 1: T, 2: 'refused', 4: [setCell()], 5: [setCell()], 6: message({ 1: message() }) },
    /at least two filters/,
  ),
  bad('a read-modify-write without rules', `${DATA}ReadModifyWriteRow`, { 1: T, 2: 'refused' }, /at least one rule/),
  bad(
    'a rule that says nothing',
    `${DATA}ReadModifyWriteRow`,
    { 1: T, 2: 'refused', 3: [message({ 1: 'f', 2: 'q' })] },
    /rule/i,
  ),
  bad(
    'a write through an authorized view that does not exist',
    `${DATA}MutateRow`,
    { ...mutateRow({ 1: '' }), 6: `${T}/authorizedViews/v` },
    /authorizedViews\/v/,
    NOT_FOUND,
  ),
  bad(
    'a write to a table and an authorized view',
    `${DATA}MutateRow`,
    { ...mutateRow({}), 6: `${T}/authorizedViews/v` },
    /only one of table_name and authorized_view_name/,
  ),
  bad(
    'a write through an authorized view of another form',
    `${DATA}MutateRow`,
    { ...mutateRow({ 1: '' }), 6: `${T}/views/v` },
    /authorized_view_name/,
  ),
];

const READS: WireRequest[] = [
  bad('a read of -1 rows', `${DATA}ReadRows`, read({ 4: -1 }), /rows_limit.*-1/),
  bad('a read of an empty row key', `${DATA}ReadRows`, read({ 2: message({ 1: ['kept', ''] }) }), /row key 1/),
  bad(
    'a range that starts above its end',
    `${DATA}ReadRows`,
    read({ 2: message({ 2: [message({ 1: 'b', 3: 'a' })] }) }),
    /"b".*above.*"a"/,
  ),
  bad(
    'a read of a view',
    `${DATA}ReadRows`,
    { 11: `${INSTANCE}/materializedViews/v` },
    /materializedViews\/v/,
    NOT_FOUND,
  ),
  bad('a filter of 20 KiB and more', `${DATA}ReadRows`, filtered({ 9: 'x'.repeat(20_480) }), /the limit is 20480/),
  bad('a filter of a kind to come', `${DATA}ReadRows`, filtered({ 99: 1 }), /twenty kinds/),
  bad(
    'a filter of a kind to come in a chain',
    `${DATA}ReadRows`,
    filtered({ 1: message({ 1: [message({ 17: true }), message({ 99: 1 })] }) }),
    /twenty kinds/,
  ),
  bad(
    'a filter of a kind to come as a predicate',
    `${DATA}CheckAndMutateRow`,
    { 1: T, 2: 'refused', 4: [setCell()], 6: message({ 99: 1 }) },
    /twenty kinds/,
  ),
  bad('a sink that is false', `${DATA}ReadRows`, filtered({ 16: false }), /sink/),
  bad('a pass-all that is false', `${DATA}ReadRows`, filtered({ 17: false }), /passAll/),
  bad(
    'a condition without a predicate',
    `${DATA}ReadRows`,
    filtered({ 3: message({ 2: message({ 17: true }) }) }),
    /predicate_filter/,
  ),
  bad(
    'filters nested 5,000 deep',
    `${DATA}ReadRows`,
    filtered(nestedFilter(5000)),
    /limit is 20480|recursion depth|deep/,
  ),
  bad('a filter that is no message', `${DATA}ReadRows`, read({ 3: Buffer.from([0xff, 0xff, 0xff]) }), /RowFilter/),
  bad('a filter as a number', `${DATA}ReadRows`, read({ 3: 7 }), /./),
];

/** Filters whose ranges start above their end: no mistake, but nothing passes them. */
export const EMPTY_FILTERS: readonly Buffer[] = [
  message({ 7: message({ 1: 'f', 2: 'b', 4: 'a' }) }),
  message({ 15: message({ 1: 'z', 3: 'a' }) }),
  message({ 8: message({ 1: 3000, 2: 2000 }) }),
];

function nestedFilter(depth: number): Fields {
  let inner: Fields = { 17: true };
  for (let i = 0; i < depth; i++) inner = { 2: message({ 1: message(inner) }) };
  return inner;
}

const table = (fields: Fields): Fields => ({ 1: INSTANCE, 2: 'other', 3: message(fields) });
const family = (fields: Fields): Fields => table({ 3: message({ 1: 'f', 2: message(fields) }) });
const ADMINISTRATION: WireRequest[] = [
  bad('a table in nothing', `${ADMIN}CreateTable`, { 2: 'other' }, /parent/),
  bad('a table without a name', `${ADMIN}CreateTable`, { 1: INSTANCE }, /table (id|name)/),
  bad('a table id of two parts', `${ADMIN}CreateTable`, { 1: INSTANCE, 2: 'a/b' }, /a\/b/),
  bad(
    'a table with a split at the empty row',
    `${ADMIN}CreateTable`,
    { 1: INSTANCE, 2: 'other', 4: [message()] },
    /split/,
  ),
  bad('a granularity to come', `${ADMIN}CreateTable`, table({ 4: 9 }), /granularity.*9/i),
  bad('a rule of no versions', `${ADMIN}CreateTable`, family({ 1: message({ 1: 0 }) }), /versions/),
  bad(
    'an age above every calendar',
    `${ADMIN}CreateTable`,
    family({ 1: message({ 2: message({ 1: 2n ** 62n }) }) }),
    /max_age|age/,
  ),
  bad('a negative age', `${ADMIN}CreateTable`, family({ 1: message({ 2: message({ 1: -5 }) }) }), /-5000000/),
  bad(
    'an aggregate of text',
    `${ADMIN}CreateTable`,
    family({ 3: message({ 6: message({ 1: message({ 2: message() }), 4: message() }) }) }),
    /aggregate|input|type/i,
  ),
  bad(
    'a request of more than 4 MiB',
    `${ADMIN}CreateTable`,
    { 1: INSTANCE, 2: 'x'.repeat(5 << 20) },
    /the limit is 4194304/,
    RESOURCE_EXHAUSTED,
  ),
  bad('a list of tables of nothing', `${ADMIN}ListTables`, {}, /parent/),
  bad('a page of -1 tables', `${ADMIN}ListTables`, { 1: INSTANCE, 4: -1 }, /page_size.*-1/),
  bad('a page token that is none', `${ADMIN}ListTables`, { 1: INSTANCE, 3: 'zzzz' }, /page_token/),
  bad('no change of families', `${ADMIN}ModifyColumnFamilies`, { 1: T }, /modifications/),
  bad(
    'a change that says nothing',
    `${ADMIN}ModifyColumnFamilies`,
    { 1: T, 2: [message({ 1: 'f' })] },
    /create, update and drop/,
  ),
  bad(
    'a drop that is false',
    `${ADMIN}ModifyColumnFamilies`,
    { 1: T, 2: [message({ 1: 'f', 4: false })] },
    /create, update and drop/,
  ),
  bad(
    'an update of an unknown field',
    `${ADMIN}ModifyColumnFamilies`,
    { 1: T, 2: [message({ 1: 'f', 3: message(), 6: message({ 1: 'colour' }) })] },
    /colour/,
  ),
  bad(
    'a good change and a bad one',
    `${ADMIN}ModifyColumnFamilies`,
    { 1: T, 2: [message({ 1: 'new', 2: message() }), message({ 1: 'none', 4: true })] },
    /"none"/,
    NOT_FOUND,
  ),
  bad('a drop of no rows', `${ADMIN}DropRowRange`, { 1: T }, /row_key_prefix/),
  bad('a drop of an empty prefix', `${ADMIN}DropRowRange`, { 1: T, 2: '' }, /row_key_prefix/),
  bad(
    'a drop of all rows of no table',
    `${ADMIN}DropRowRange`,
    { 1: `${INSTANCE}/tables/none`, 3: true },
    /tables\/none/,
    NOT_FOUND,
  ),
  bad('a token that was never issued', `${ADMIN}CheckConsistency`, { 1: T, 2: 'made up' }, /token/),
  bad('an update of a table without a table', `${ADMIN}UpdateTable`, {}, /./),
  bad('a deletion of nothing', `${ADMIN}DeleteTable`, {}, /./),
  bad('a restoration of nothing', `${ADMIN}UndeleteTable`, {}, /table name ""/),
  bad(
    'a restoration of a table name that is not UTF-8',
    `${ADMIN}UndeleteTable`,
    { 1: NOT_UTF8 },
    /UTF-8|utf|table name/i,
  ),
  bad('a restoration of a table that exists', `${ADMIN}UndeleteTable`, { 1: T }, /exists already/, ALREADY_EXISTS),
  bad(
    'a restoration of a table that was never deleted',
    `${ADMIN}UndeleteTable`,
    { 1: `${INSTANCE}/tables/none` },
    /tables\/none/,
    NOT_FOUND,
  ),
  bad('a look at nothing', `${ADMIN}GetTable`, {}, /./),
];

const CONTROL: WireRequest[] = [
  bad('a compaction of half a table name', `${OPERATOR}CompactTables`, { 1: 'projects/local' }, /projects\/PROJECT/),
  bad(
    'a compaction of a table name that is not UTF-8',
    `${OPERATOR}CompactTables`,
    { 1: NOT_UTF8 },
    /UTF-8|utf|table name/i,
  ),
  bad(
    'a compaction of no table',
    `${OPERATOR}CompactTables`,
    { 1: `${INSTANCE}/tables/none` },
    /tables\/none/,
    NOT_FOUND,
  ),
  bad('a split of nothing', `${OPERATOR}SplitTablets`, {}, /table name ""/),
  bad('a split at a row that is too long', `${OPERATOR}SplitTablets`, { 1: T, 2: Buffer.alloc(65_537) }, /65537 bytes/),
  bad(
    'a split of no table',
    `${OPERATOR}SplitTablets`,
    { 1: `${INSTANCE}/tables/none`, 2: 'r' },
    /tables\/none/,
    NOT_FOUND,
  ),
  bad('a merge without a row', `${OPERATOR}MergeTablets`, { 1: T }, /row must name/),
  bad('a merge of nothing', `${OPERATOR}MergeTablets`, { 2: 'r' }, /table name ""/),
  bad('a merge at a row that is too long', `${OPERATOR}MergeTablets`, { 1: T, 2: Buffer.alloc(65_537) }, /65537 bytes/),
  bad('a deletion of nothing at once', `${OPERATOR}DeleteTableAtOnce`, {}, /table name ""/),
  bad(
    'a deletion of no table at once',
    `${OPERATOR}DeleteTableAtOnce`,
    { 1: `${INSTANCE}/tables/none` },
    /tables\/none/,
    NOT_FOUND,
  ),
  bad('an export of nothing', `${OPERATOR}ExportBackup`, { 2: 'x' }, /backup ""/),
  bad('an export out of the store', `${OPERATOR}ExportBackup`, { 1: BACKUP, 2: '../x' }, /id "..\/x"/),
  bad('an import of nothing', `${OPERATOR}ImportBackup`, { 1: BACKUP, 3: 1 }, /id ""/),
  bad('an import to nowhere', `${OPERATOR}ImportBackup`, { 2: 'x', 3: 1 }, /backup ""/),
  bad('an import that has expired', `${OPERATOR}ImportBackup`, { 1: BACKUP, 2: 'x', 3: -1 }, /6 hours/),
  bad('an import that never expires', `${OPERATOR}ImportBackup`, { 1: BACKUP, 2: 'x', 3: 2n ** 63n - 1n }, /90 days/),
  bad('a removal of nothing from the store', `${OPERATOR}DeleteExport`, {}, /id ""/),
  bad('a removal of what lies above the store', `${OPERATOR}DeleteExport`, { 1: '..' }, /id ".."/),
  bad('the tablets of nothing', `${OPERATOR}ListTablets`, {}, /table name ""/),
  bad('the events of nothing', `${OPERATOR}ListTabletEvents`, {}, /table name ""/),
  bad('what the families of nothing take', `${OPERATOR}GetFamilyUsage`, {}, /table name ""/),
  bad('the usage of nothing', `${OPERATOR}GetTableUsage`, {}, /table name ""/),
  bad('a quota of nothing', `${OPERATOR}SetQuota`, { 3: 5 }, /table name ""/),
  bad('a quota below nothing', `${OPERATOR}SetQuota`, { 1: T, 3: -1 }, /whole number of bytes/),
  bad('a quota of a family with no such name', `${OPERATOR}SetQuota`, { 1: T, 2: 'a b', 3: 5 }, /family/),
  bad('a quota of no family', `${OPERATOR}SetQuota`, { 1: T, 2: 'none', 3: 5 }, /none/, NOT_FOUND),
  bad('broken bytes for an operator’s call', `${OPERATOR}Flush`, Buffer.from([0x0a, 0x7f, 0x61]), /FlushRequest/),
  bad('an instance of nothing', `${INSTANCES}GetInstance`, {}, /name "" must be/),
  bad('the instances of nothing', `${INSTANCES}ListInstances`, {}, /parent "" must be/),
  bad('a cluster of no instance', `${INSTANCES}GetCluster`, { 1: INSTANCE }, /clusters\/CLUSTER/),
  bad('a memory layer of nothing', `${INSTANCES}GetMemoryLayer`, {}, /clusters\/CLUSTER\/memoryLayer/),
  bad('the memory layers of an instance', `${INSTANCES}ListMemoryLayers`, { 1: INSTANCE }, /clusters\/CLUSTER/),
  bad('a change of no memory layer', `${INSTANCES}UpdateMemoryLayer`, {}, /memory_layer must be set/),
  bad('the hot tablets of an instance', `${INSTANCES}ListHotTablets`, { 1: INSTANCE }, /clusters\/CLUSTER/),
  bad(
    'hot tablets in pages of less than none',
    `${INSTANCES}ListHotTablets`,
    { 1: `${INSTANCE}/clusters/edubba`, 4: -1 },
    /page_size/,
  ),
  bad(
    'hot tablets after no page',
    `${INSTANCES}ListHotTablets`,
    { 1: `${INSTANCE}/clusters/edubba`, 5: 'x' },
    /page_token/,
  ),
  bad('the clusters of a project', `${INSTANCES}ListClusters`, { 1: 'projects/local' }, /instances\/INSTANCE/),
];

const STRANGE: WireRequest[] = [
  bad('an unknown method', `${DATA}Nothing`, {}, /./, UNIMPLEMENTED),
  bad('an unknown service', '/google.bigtable.v9.Bigtable/MutateRow', {}, /./, UNIMPLEMENTED),
  bad('a method that is not implemented', `${ADMIN}SnapshotTable`, {}, /SnapshotTable/, UNIMPLEMENTED),
  bad(
    'broken bytes for a method that is not implemented',
    `${ADMIN}SnapshotTable`,
    Buffer.from([0x0a, 0x7f, 0x61]),
    /SnapshotTableRequest/,
  ),
  bad(
    'a length of 2^64 bytes',
    `${DATA}MutateRow`,
    Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
    /./,
  ),
  bad('a varint without an end', `${DATA}ReadRows`, Buffer.alloc(20, 0xff), /./),
  bad('a group without an end', `${DATA}ReadRows`, Buffer.from([0x0b, 0x0b, 0x0b]), /./),
  bad('a field numbered 0', `${DATA}MutateRow`, Buffer.from([0x02, 0x00]), /./),
];

export const WIRE_REQUESTS: readonly WireRequest[] = [...WRITES, ...READS, ...ADMINISTRATION, ...CONTROL, ...STRANGE];
