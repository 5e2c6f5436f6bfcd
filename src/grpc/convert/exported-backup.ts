/** Backups in the backup store in the API's terms and in the model's (API: edubba.v1.ExportedBackup). */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ExportedBackup, ListedExport } from '../../model/index.ts';
import type { ExportedBackup as Message, ExportedBackupSchema } from '../generated/edubba/v1/control_pb.ts';

export function exportMessage(one: ListedExport): MessageInitShape<typeof ExportedBackupSchema> {
  if (one.state === 'unreadable') return { id: one.id, unreadable: true };
  const { id, backup, table, startMicros, endMicros, exportedMicros, files, sizeBytes } = one;
  return {
    ...{ id, backup, table },
    startMicros: BigInt(startMicros),
    endMicros: BigInt(endMicros),
    exportedMicros: BigInt(exportedMicros),
    files: BigInt(files),
    sizeBytes: BigInt(sizeBytes),
  };
}

export function exportedBackupOf(message: Message): ExportedBackup {
  const { id, backup, table, startMicros, endMicros, exportedMicros, files, sizeBytes } = message;
  return {
    ...{ id, state: 'ready', backup, table },
    startMicros: Number(startMicros),
    endMicros: Number(endMicros),
    exportedMicros: Number(exportedMicros),
    files: Number(files),
    sizeBytes: Number(sizeBytes),
  };
}

export function listedExportOf(message: Message): ListedExport {
  return message.unreadable ? { id: message.id, state: 'unreadable' } : exportedBackupOf(message);
}
