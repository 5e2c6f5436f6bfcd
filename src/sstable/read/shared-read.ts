/** Memory that several blocks or pages share: for those who bring them an opaque token, one a piece of memory. The block cache does its accounts by it. */
export class SharedRead {
  /** Blocks in it that are kept in its memory. */
  kept = 0;
  /** Bytes of evicted blocks and pages in it: the memory stays while one is kept. */
  deadBytes = 0;
}
