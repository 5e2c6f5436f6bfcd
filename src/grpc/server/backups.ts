/** Backups: the seven calls of google.bigtable.admin.v2.BigtableTableAdmin. Their operations are done when answered. */
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { BigtableError, Code, invalidArgument } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { BackupService, Service } from '../../service/index.ts';
import { microsOf } from '../convert/time.ts';
import { backupInfo, backupMessage, kindOf, shownBackup } from '../convert/backup.ts';
import { applyMask } from '../convert/field-mask.ts';
import { ANY, BACKUP, CLUSTER, idsOf, INSTANCE } from '../convert/names.ts';
import { tableMessage } from '../convert/table.ts';
import {
  BigtableTableAdmin,
  CopyBackupMetadataSchema,
  type CopyBackupRequest,
  CreateBackupMetadataSchema,
  type CreateBackupRequest,
  type ListBackupsRequest,
  RestoreTableMetadataSchema,
  type RestoreTableRequest,
  type UpdateBackupRequest,
} from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import {
  BackupSchema,
  RestoreSourceType,
  Table_View as View,
  TableSchema,
} from '../generated/google/bigtable/admin/v2/table_pb.ts';
import type { Operation } from '../generated/google/longrunning/operations_pb.ts';
import { backupFilter, backupOrder } from './backup-filter.ts';
import type { MethodTable } from './method-table.ts';
import type { Operations } from './operations.ts';

const CHANGEABLE = ['expire_time', 'hot_to_standard_time'];
const MAX_PAGE = 1000;

export function registerBackups(methods: MethodTable, service: Service, operations: Operations): void {
  const admin = BigtableTableAdmin.method;
  const calls = new BackupCalls(service, operations);
  methods.change(admin.createBackup, (context, request) => calls.create(context, request));
  methods.change(admin.copyBackup, (context, request) => calls.copy(context, request));
  methods.unary(admin.getBackup, async (context, { name }) => {
    idsOf(name, BACKUP, 'name');
    return backupMessage(await calls.backups.getBackup(context, name));
  });
  methods.unary(admin.listBackups, (context, request) => calls.list(context, request));
  methods.change(admin.updateBackup, (context, request) => calls.update(context, request));
  methods.change(admin.deleteBackup, async (context, { name }) => {
    idsOf(name, BACKUP, 'name');
    await calls.backups.deleteBackup(context, name);
    return {};
  });
  methods.change(admin.restoreTable, (context, request) => calls.restore(context, request));
}

class BackupCalls {
  readonly #service: Service;
  readonly #operations: Operations;

  constructor(service: Service, operations: Operations) {
    this.#service = service;
    this.#operations = operations;
  }

  get backups(): BackupService {
    const { backups } = this.#service;
    if (backups === undefined) throw new BigtableError(Code.FAILED_PRECONDITION, 'this door reaches no backups');
    return backups;
  }

  async create(context: RequestContext, { parent, backupId, backup }: CreateBackupRequest): Promise<Operation> {
    idsOf(parent, CLUSTER, 'parent');
    if (backup === undefined) throw invalidArgument('backup must be set', { field: 'backup' });
    const { sourceTable, backupType, expireTime, hotToStandardTime } = backup;
    const hotToStandardMicros = microsOf(hotToStandardTime, 'hot_to_standard_time');
    const made = await this.backups.createBackup(context, {
      name: `${parent}/backups/${backupId}`,
      source: sourceTable,
      kind: kindOf(backupType),
      expireMicros: expireMicrosOf(expireTime),
      ...(hotToStandardMicros !== undefined && { hotToStandardMicros }),
    });
    const { name, startTime, endTime } = backupMessage(made);
    return this.#operations.done(
      context,
      [CreateBackupMetadataSchema, { name, sourceTable, ...times(startTime, endTime) }],
      [BackupSchema, backupMessage(made)],
    );
  }

  async copy(context: RequestContext, request: CopyBackupRequest): Promise<Operation> {
    const { parent, backupId, sourceBackup, expireTime } = request;
    idsOf(parent, CLUSTER, 'parent');
    idsOf(sourceBackup, BACKUP, 'source_backup');
    const source = await this.backups.getBackup(context, sourceBackup);
    const made = await this.backups.createBackup(context, {
      name: `${parent}/backups/${backupId}`,
      source: sourceBackup,
      kind: 'standard',
      expireMicros: expireMicrosOf(expireTime),
    });
    const { name, startTime, endTime } = backupMessage(made);
    const progress = { progressPercent: 100, ...times(startTime, endTime) };
    return this.#operations.done(
      context,
      [CopyBackupMetadataSchema, { name, sourceBackupInfo: backupInfo(source), progress }],
      [BackupSchema, backupMessage(made)],
    );
  }

  async list(context: RequestContext, { parent, filter, orderBy, pageSize, pageToken }: ListBackupsRequest) {
    const [project, instance, cluster] = idsOf(parent, CLUSTER, 'parent');
    const test = backupFilter(filter);
    const order = backupOrder(orderBy);
    const clusters = `projects/${project}/instances/${instance}/clusters/`;
    const prefix = cluster === ANY ? clusters : `${clusters}${cluster}/`;
    const listed = await this.backups.listBackups(context, prefix);
    const all = listed.map(shownBackup).filter(test).sort(order);
    if (pageSize < 0) throw invalidArgument(`page_size must not be negative, is ${pageSize}`, { field: 'page_size' });
    // the name of the last one of the page before: where it is gone the list begins anew
    const after = Buffer.from(pageToken, 'base64url').toString();
    const from = pageToken === '' ? 0 : all.findIndex(({ name }) => name === after) + 1;
    const page = all.slice(from, from + (pageSize === 0 ? MAX_PAGE : Math.min(pageSize, MAX_PAGE)));
    const last = page.at(-1);
    const hasMore = last !== undefined && from + page.length < all.length;
    return {
      backups: page.map(backupMessage),
      nextPageToken: hasMore ? Buffer.from(last.name).toString('base64url') : '',
    };
  }

  async update(context: RequestContext, { backup: given, updateMask: mask }: UpdateBackupRequest) {
    if (given === undefined) throw invalidArgument('backup must be set', { field: 'backup' });
    idsOf(given.name, BACKUP, 'backup.name');
    const present = backupMessage(await this.backups.getBackup(context, given.name));
    const wanted = applyMask(BackupSchema, { present, given, mask }, CHANGEABLE);
    const isNamed = (field: string): boolean => mask?.paths.some((path) => path.split('.')[0] === field) ?? false;
    const hotToStandardMicros = microsOf(wanted.hotToStandardTime, 'hot_to_standard_time');
    return backupMessage(
      await this.backups.updateBackup(context, given.name, {
        ...(isNamed('expire_time') && { expireMicros: expireMicrosOf(wanted.expireTime) }),
        ...(isNamed('hot_to_standard_time') && { hotToStandardMicros: hotToStandardMicros ?? null }),
      }),
    );
  }

  async restore(context: RequestContext, { parent, tableId, source }: RestoreTableRequest): Promise<Operation> {
    idsOf(parent, INSTANCE, 'parent');
    if (source.case !== 'backup') throw invalidArgument('backup must name a backup', { field: 'backup' });
    idsOf(source.value, BACKUP, 'backup');
    const startTime = this.#operations.now();
    const backup = await this.backups.getBackup(context, source.value);
    const name = `${parent}/tables/${tableId}`;
    const table = await this.backups.restoreTable(context, name, source.value);
    return this.#operations.done(
      context,
      [
        RestoreTableMetadataSchema,
        {
          name,
          sourceType: RestoreSourceType.BACKUP,
          sourceInfo: { case: 'backupInfo', value: backupInfo(backup) },
          progress: { progressPercent: 100, ...times(startTime, this.#operations.now()) },
        },
      ],
      [TableSchema, tableMessage(table, View.SCHEMA_VIEW)],
    );
  }
}

function expireMicrosOf(time: Timestamp | undefined): number {
  const micros = microsOf(time, 'expire_time');
  if (micros === undefined) throw invalidArgument('expire_time must be set', { field: 'expire_time' });
  return micros;
}

function times(startTime: Timestamp | undefined, endTime: Timestamp | undefined) {
  return { ...(startTime && { startTime }), ...(endTime && { endTime }) };
}
