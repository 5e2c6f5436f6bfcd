/** Inserts into an array in place, for the short arrays of tree nodes and small rows. */
import { assert } from '../base/index.ts';

/** Puts the item at `index` and moves the later ones. Quicker than splice for the length of a node. */
export function insertAt<T>(items: T[], index: number, item: T): void {
  const last = items.length - 1;
  assert(index <= last + 1, 'an insertion lies inside the array or at its end');
  if (index > last) {
    items.push(item);
    return;
  }
  items.push(items[last]!);
  for (let i = last; i > index; i--) items[i] = items[i - 1]!;
  items[index] = item;
}
