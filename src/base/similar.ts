/** The name that somebody probably meant, for "did you mean". */

/** A name is similar when at most this share of its characters must change. */
const MOST_CHANGED_SHARE = 0.4;
/** Longer texts are no mistyped names, and comparing them would take long. */
const MOST_CHARS = 100;

/** The most similar of `names`, or undefined where none is similar. Case and separators count for nothing. */
export function similarName(name: string, names: readonly string[]): string | undefined {
  if (name.length > MOST_CHARS) return undefined;
  const given = plain(name);
  let best: string | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const known of names) {
    const other = plain(known);
    const changes = changesBetween(given, other);
    if (changes < fewest && changes <= Math.max(given.length, other.length) * MOST_CHANGED_SHARE) {
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

/** How many characters are to be inserted, deleted or replaced (Levenshtein's distance). */
export function changesBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[to.length] as number;
}
