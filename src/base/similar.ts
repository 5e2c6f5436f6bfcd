/** The name that was probably meant, for "did you mean". */

/**
 * A name is similar when at most this share of its characters must change; one may in any case, so that `ed` means
 * `end`.
 */
const MAX_CHANGED_SHARE = 0.4;
/** Shortest word to compare: when a single letter changes, nothing is left of it. */
const MIN_CHARS = 2;
/** Longer texts are not mistyped names, and comparing them would take long. */
const MAX_CHARS = 100;

/** The most similar of `names`, or undefined where none is similar. Case and separators count for nothing. */
export function similarName(name: string, names: readonly string[]): string | undefined {
  if (name.length > MAX_CHARS) return undefined;
  const given = plain(name);
  if (given.length < MIN_CHARS) return undefined;
  let best: string | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const known of names) {
    const other = plain(known);
    const changes = changesBetween(given, other);
    if (changes < fewest && changes <= Math.max(1, Math.max(given.length, other.length) * MAX_CHANGED_SHARE)) {
      best = known;
      fewest = changes;
    }
  }
  return best;
}

/** " (did you mean …?)", or nothing where no name is similar. */
export function didYouMean(name: string, names: readonly string[]): string {
  const similar = similarName(name, names);
  return similar === undefined ? '' : ` (did you mean ${similar}?)`;
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[-_ ]/g, '');
}

/** The number of characters to insert, delete, replace, or exchange with the next one. */
function changesBetween(from: string, to: string): number {
  let before: readonly number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const isSame = from[i - 1] === to[j - 1];
      const isExchanged = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      const replaced = row[j - 1]! + (isSame ? 0 : 1);
      const exchanged = isExchanged ? before[j - 2]! + 1 : replaced;
      next.push(Math.min(replaced, exchanged, row[j]! + 1, next[j - 1]! + 1));
    }
    before = row;
    row = next;
  }
  return row[to.length]!;
}
