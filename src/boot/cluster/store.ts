/** The store of a cluster's files by its address: a prefix of a bucket, or a directory that all machines share. */
import { resolve } from 'node:path';
import type { Clock, Random } from '../../env/index.ts';
import { nativeCodecs, openS3Store, openSharedDirectory, type SharedStore } from '../../platform/index.ts';

export interface StoreOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Files of a shared directory that are kept open. Default: the adapter's. */
  readonly maxOpenFiles?: number;
  /** False: this process has proven the store already. Default: true. */
  readonly selfTest?: boolean;
}

export function isBucket(address: string): boolean {
  return address.startsWith('s3://');
}

/**
 * Opens the store at `s3://BUCKET/PREFIX?endpoint=URL&region=NAME`, or in a directory. Fails as its adapter does: with
 * FAILED_PRECONDITION, if it breaks a promise.
 */
export function openStore(address: string, options: StoreOptions): Promise<SharedStore> {
  const { clock, random, maxOpenFiles, selfTest = true } = options;
  const shared = { clock, random, selfTest, checksum: nativeCodecs().checksum };
  if (!isBucket(address))
    return openSharedDirectory(resolve(address), { ...shared, ...(maxOpenFiles !== undefined && { maxOpenFiles }) });
  return openS3Store(address, shared);
}
