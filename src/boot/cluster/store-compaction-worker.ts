/**
 * The task of a worker thread: one compaction of files in the store of a cluster. It opens files by their paths, which
 * never change, and writes new ones.
 */
import { nativeCodecs, systemClock } from '../../platform/index.ts';
import { type CompactionJob, type CompactionResult, compactFiles } from '../../tablet/index.ts';
import { openStore } from '../store/store.ts';

export interface StoreJob {
  /** The store's address. */
  readonly store: string;
  readonly maxOpenFiles: number;
  readonly job: CompactionJob;
}

const codecs = nativeCodecs();

export async function run({ store: address, maxOpenFiles, job }: StoreJob): Promise<CompactionResult> {
  // the server of this process has proven it
  const { fileSystem, close } = await openStore(address, { maxOpenFiles, selfTest: false });
  try {
    return await compactFiles({ fileSystem, codecs, clock: systemClock }, job);
  } finally {
    await close();
  }
}
