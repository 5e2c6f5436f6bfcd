/** A store that many machines share, once it is open: a directory or a prefix of a bucket. */
import type { FileSystem, SlotStore } from '../../env/index.ts';

export interface SharedStore {
  readonly fileSystem: FileSystem;
  /** What its logs are made of. */
  readonly slots: SlotStore;
  /** The store's identity, made with it: 32 lower-case hexadecimal digits. */
  readonly identity: string;
  /** Closes what is open, connections too. No call may follow. */
  close(): Promise<void>;
}
