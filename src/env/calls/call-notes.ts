import type { ByteString } from '../../base/index.ts';

const NO_RANGES: CallNotes['rowRanges'] = [];

/**
 * Notes on one call while it is carried out, for the access log and the log of slow calls: what it requests, and what
 * it cost. The code that does the work adds to the numbers; no decision depends on them. A context without notes is not
 * logged.
 *
 * Work that another thread does for the call is noted there and not here: `passedOn` counts such calls.
 */
export class CallNotes {
  /** Full name of the table, or of the other thing that the call names. Empty where it is not known. */
  target = '';
  /** Half-open ranges of rows that a read requests; none in a read of the whole table. */
  rowRanges: readonly { readonly start: ByteString; readonly end: ByteString | undefined }[] = NO_RANGES;
  rowsLimit = 0;
  reversed = false;
  /** The filter, as the rooms above know it. */
  filter: { readonly kind: string } | undefined = undefined;
  /** Rows that were answered, or that a batch of writes names. */
  rows = 0;
  // the counts below include reads of METADATA, where a tablet had to be found for the call
  /** Reads of tablets; one that continues elsewhere counts again. */
  tablets = 0;
  /** Files that these reads touched. */
  files = 0;
  rowsScanned = 0;
  /** Blocks found in memory, and blocks that had to be loaded. */
  blockHits = 0;
  blockMisses = 0;
  /** The number of waits for the disk, and their total time. */
  loads = 0;
  loadMs = 0;
  /** Time before the call's work began: until its request had arrived and was admitted. */
  queuedMs = 0;
  /** Time that its writes waited for memory or for compactions. */
  writeWaitMs = 0;
  /** Calls to other threads. */
  passedOn = 0;
}
