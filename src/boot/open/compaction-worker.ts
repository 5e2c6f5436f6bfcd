/**
 * The task of a worker thread: one compaction of files in a database's directory. The directory's lock and logs stay
 * with the main thread; this one opens files by their paths, which never change, and writes new ones.
 */
import { nativeCodecs, shareFiles, systemClock } from '../../platform/index.ts';
import { type CompactionJob, type CompactionResult, compactFiles } from '../../tablet/index.ts';

export interface DirectoryJob {
  readonly directory: string;
  readonly maxOpenFiles: number;
  readonly job: CompactionJob;
}

const codecs = nativeCodecs();

export async function run({ directory, maxOpenFiles, job }: DirectoryJob): Promise<CompactionResult> {
  const fileSystem = shareFiles(directory, { checksum: codecs.checksum, clock: systemClock, maxOpenFiles });
  try {
    return await compactFiles({ fileSystem, codecs, clock: systemClock }, job);
  } finally {
    await fileSystem.close();
  }
}
