/** Checks the database in a directory, however damaged it is. Takes no lock and changes nothing. */
import { CorruptionError } from '../../base/index.ts';
import { checkDatabase, type CheckOptions, type CheckReport } from '../../inspect/index.ts';
import { openForInspection } from './inspection.ts';

/** NOT_FOUND where there is no database. */
export async function checkDirectory(directory: string, options: CheckOptions = {}): Promise<CheckReport> {
  let source: Awaited<ReturnType<typeof openForInspection>>;
  try {
    source = await openForInspection(directory);
  } catch (error) {
    if (!(error instanceof CorruptionError)) throw error;
    const counts = { lockFiles: 0, tables: 0, tablets: 0, ssTables: 0, entries: 0, logs: 0, records: 0, bytes: 0 };
    return {
      findings: [{ file: error.file, offset: error.offset, message: error.message }],
      orphans: undefined,
      notes: ['nothing else was checked'],
      counts,
    };
  }
  try {
    return await checkDatabase(source, options);
  } finally {
    await source.close();
  }
}
