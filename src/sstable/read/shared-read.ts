/**
 * Memory that several blocks or pages share. Readers pass it on as a token, one for each piece of memory; the block
 * cache counts by it.
 */
export class SharedRead {
  /** Number of kept blocks that use the memory. */
  kept = 0;
  /** Bytes of evicted blocks and pages in it: the memory stays until none is kept. */
  deadBytes = 0;
}
