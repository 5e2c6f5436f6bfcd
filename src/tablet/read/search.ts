/**
 * The one way of waiting of reads inside a tablet: that of LayerCursor, for whole operations. An operation is written
 * once, as steps that are synchronous, and the caller waits between them:
 *
 *   while (!search.advance()) await search.load();
 *   // the result is ready
 *   search.close();
 *
 * Hot path: no promise where everything is in memory.
 */
export interface Search {
  /**
   * Continues until the result is ready: true. False if it has to wait before it continues, for blocks or for the next
   * slice of the event loop: then `load` comes first.
   */
  advance(): boolean;
  /** Waits for what `advance` needs. */
  load(): Promise<void>;
  /** Releases its resources. Must be called once, also after a failure. */
  close(): void;
}
