/**
 * The kinds of files in a database's directory, and the damage that is done to a file of each: bytes flipped, the file
 * cut short, the file gone.
 */
import type { SeededRandom } from '../../src/env/index.ts';

export interface FileKind {
  readonly name: string;
  readonly pattern: RegExp;
}

export const KINDS: readonly FileKind[] = [
  { name: 'the format file', pattern: /^EDUBBA$/ },
  { name: 'the lock file', pattern: /^LOCK$/ },
  { name: "the lock service's files", pattern: /^files\/lock-service\/files\// },
  { name: "the lock service's numbers", pattern: /^files\/lock-service\/numbers\// },
  { name: 'SSTables', pattern: /^files\/sstables\// },
  { name: 'segments of the commit log', pattern: /^logs\/.*\.segment$/ },
  { name: 'fences of the commit log', pattern: /^logs\/.*\/FENCE$/ },
];

export interface Damage {
  readonly path: string;
  readonly kind: 'flipped' | 'cut' | 'removed';
  /** The byte that is flipped, or the length that is left. */
  readonly at: number;
  /** The change of the byte. */
  readonly mask: number;
}

/**
 * Damages that no reader can tell from what is left, and why. The outcome may be a smaller database, never a wrong one.
 *
 * Not among the damages here, but of the same kind: whole appends at the end of a log turned to zeros look as if they
 * had never been made, and so does the last of several segments when it is removed (docs/formats/log-file.md,
 * "Reading").
 */
export function cannotBeSeen({ path, kind }: Damage, isRoot: boolean): string | undefined {
  if (kind === 'removed' && !isRoot && path.startsWith('files/lock-service/files/')) {
    return 'a small file of the lock service that is gone is one that was deleted: its table is one that does not exist';
  }
  return undefined;
}

/** Damages that could be found and are not yet: each has a test of its own. */
export function isNotSeenYet({ path, kind }: Damage, isRoot: boolean): boolean {
  return kind === 'removed' && (isRoot || path.endsWith('.segment'));
}

/** How many bytes of a file are flipped, and to how many lengths it is cut, besides those at its ends. */
const FLIPS = 14;
const CUTS = 5;

export function damagesOf(path: string, content: Buffer, random: SeededRandom, stride: number | undefined): Damage[] {
  // bytes after the last one that is not zero are allocated ahead, all alike
  let used = content.length;
  while (used > 0 && content[used - 1] === 0) used--;
  const damages: Damage[] = [{ path, kind: 'removed', at: 0, mask: 0 }];
  const below = (most: number): number => Math.floor(random.float() * most);
  const mask = (): number => 1 + below(255);
  const flips = new Set<number>();
  const cuts = new Set<number>();
  if (stride !== undefined) {
    for (let at = 0; at < used; at += stride) flips.add(at);
    for (let at = 0; at < used; at += stride) cuts.add(at);
  } else if (used > 0) {
    for (const at of [0, used - 1]) flips.add(at);
    while (flips.size < Math.min(FLIPS, used)) flips.add(below(used));
    for (const at of [0, used - 1]) cuts.add(at);
    while (cuts.size < Math.min(CUTS, used)) cuts.add(below(used));
  }
  if (used < content.length) {
    for (const at of [used, content.length - 1]) flips.add(at);
    for (const at of [used, used + 40, content.length - 1]) cuts.add(at);
  }
  for (const at of flips) damages.push({ path, kind: 'flipped', at, mask: mask() });
  for (const at of cuts) damages.push({ path, kind: 'cut', at, mask: 0 });
  return damages;
}
