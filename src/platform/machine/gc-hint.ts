/**
 * Collects the young generation after slices of work whose objects stay, where the process allows it (`node
 * --expose-gc`, which the edubba command sets).
 *
 * Why: V8 collects when the young generation is full. In a request of 100,000 cells all of it may live, and moving that
 * holds the event loop far beyond a slice. A collection after every few slices moves a little each time, in a turn of
 * its own. Scans do not use it: their objects die young, and would be moved in vain (docs/BENCHMARKS.md).
 */
import { getHeapSpaceStatistics } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (options: { readonly type: 'minor' }) => void;

/** Young objects, dead or alive, that make a collection worth its time. */
const MIN_YOUNG_BYTES = 2 * 1024 * 1024;
const YOUNG_SPACE = 'new_space';

let collect: Collect | undefined;
let isLookedUp = false;

/** V8's function, where the flag is set: it is global only in contexts that were made afterwards. */
function findCollect(): Collect | undefined {
  isLookedUp = true;
  const found: unknown = globalThis.gc ?? runInNewContext('typeof gc === "function" ? gc : undefined');
  return found as Collect | undefined;
}

/** True when it collected. */
export function collectYoungObjects(): boolean {
  if (!isLookedUp) collect = findCollect();
  if (collect === undefined) return false;
  const young = getHeapSpaceStatistics().find(({ space_name: name }) => name === YOUNG_SPACE);
  if (young === undefined || young.space_used_size < MIN_YOUNG_BYTES) return false;
  collect({ type: 'minor' });
  return true;
}
