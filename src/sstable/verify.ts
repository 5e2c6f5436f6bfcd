/**
 * Holds every block of an SSTable against its index and properties: checksums (by the reader that is handed in), each entry's
 * form, the order of all entries, restart points, counts and bounds.
 */
import { CorruptionError } from '../base/index.ts';
import type { Pacer } from '../env/index.ts';
import { compareEntries, type EntryPosition } from '../model/index.ts';
import type { Block } from './block.ts';
import { BlockCursor } from './block-cursor.ts';
import { findSection, SectionName } from './format.ts';
import { type EntryKindName, type EntryStatistics, PropertiesCollector } from './properties.ts';
import type { SsTableFrame } from './ss-table-file.ts';

export interface Verification {
  readonly blocks: number;
  readonly entries: number;
  /** Of the blocks, as stored. */
  readonly blockBytes: number;
}

export async function verifyBlocks(file: string, frame: SsTableFrame, pacer: Pacer, read: (block: number) => Promise<Block>): Promise<Verification> {
  const { index, properties } = frame;
  const collector = new PropertiesCollector();
  let before: EntryPosition | undefined;
  let entries = 0;
  let blockBytes = 0;
  for (let number = 0; number < index.length; number++) {
    const block = await read(number);
    const walk = new BlockWalk(block, before);
    while (walk.next()) {
      collector.add(walk.at, walk.at.valueLength);
      if (pacer.due()) await pacer.pause();
    }
    const { first } = walk;
    const told = index.first(number);
    if (!first || compareEntries(first, told) !== 0 || first.kind !== told.kind) walk.fail('not the first entry that the index tells');
    if (walk.at.row !== index.lastRow(number)) walk.fail('not the last row that the index tells');
    if (walk.entries !== index.entries(number)) walk.fail(`${walk.entries} entries, ${index.entries(number)} in the index`);
    before = walk.before;
    entries += walk.entries;
    blockBytes += block.bytes.length;
  }
  const found = collector.statistics();
  const propertiesAt = findSection(file, frame.footer.directory, frame.sections, SectionName.properties).offset;
  for (const [name, value] of Object.entries(found)) {
    const stated = properties[name as keyof EntryStatistics];
    const same = name === 'entries' ? sameCounts(found.entries, properties.entries) : value === stated;
    if (!same) throw new CorruptionError(file, propertiesAt, `property "${name}" is not that of the entries`);
  }
  return { blocks: index.length, entries, blockBytes };
}

function sameCounts(a: EntryStatistics['entries'], b: EntryStatistics['entries']): boolean {
  return Object.entries(a).every(([kind, count]) => b[kind as EntryKindName] === count);
}

/** Walks one block and checks what a cursor takes on trust. */
class BlockWalk {
  readonly at = new BlockCursor();
  readonly #block: Block;
  #restarts = 0;
  entries = 0;
  first: EntryPosition | undefined;
  before: EntryPosition | undefined;

  constructor(block: Block, before: EntryPosition | undefined) {
    this.#block = block;
    this.before = before;
    this.at.open(block);
  }

  next(): boolean {
    const { at } = this;
    if (!at.next()) {
      if (this.#restarts !== this.#block.restarts) this.fail(`${this.#restarts} restart points, ${this.#block.restarts} listed`);
      return false;
    }
    const { row, column, kind, timestamp } = at;
    const here: EntryPosition = { row, column, kind, timestamp };
    if (this.before && compareEntries(this.before, here) >= 0) this.fail(`the entry at ${at.entryAt} is out of order`);
    const listed = this.#restarts < this.#block.restarts && this.#block.restart(this.#restarts) === at.entryAt;
    if (at.isRestart !== listed) this.fail(`restart point ${this.#restarts} is elsewhere`);
    if (at.isRestart) this.#restarts++;
    this.first ??= here;
    this.before = here;
    this.entries++;
    return true;
  }

  fail(what: string): never {
    throw new CorruptionError(this.#block.file, this.#block.offset, what);
  }
}
