/** The store of a cluster's files by its address: a prefix of a bucket, or a directory that all machines share. */
import { resolve } from 'node:path';
import {
  nativeCodecs,
  openS3Store,
  openSharedDirectory,
  type SharedStore,
  systemClock,
  systemRandom,
} from '../../platform/index.ts';
import { isBucket } from './store-address.ts';

export interface StoreOptions {
  /** Files of a shared directory that are kept open. */
  readonly maxOpenFiles: number;
  /** False: this process has proven the store already. Default: true. */
  readonly selfTest?: boolean;
}

/**
 * Opens the store at `s3://BUCKET/PREFIX?endpoint=URL&region=NAME`, or in a directory. Fails as its adapter does: with
 * FAILED_PRECONDITION, if it breaks a promise.
 */
export function openStore(address: string, options: StoreOptions): Promise<SharedStore> {
  const { maxOpenFiles, selfTest = true } = options;
  const shared = { clock: systemClock, random: systemRandom, checksum: nativeCodecs().checksum, selfTest };
  if (isBucket(address)) return openS3Store(address, shared);
  return openSharedDirectory(resolve(address), { ...shared, maxOpenFiles });
}
