/**
 * Compares every block of an SSTable with its index and properties: checksums (by the reader that is passed in), the
 * form of each entry, the order of all entries, restart points, pages, counts and bounds, and that the Bloom filter has
 * every entry.
 */
import { type ByteString, CorruptionError, quote } from '../base/index.ts';
import type { Checksum, Pacer } from '../env/index.ts';
import { compareEntries, type EntryPosition } from '../model/index.ts';
import type { Block } from './read/block.ts';
import { BlockCursor } from './read/block-cursor.ts';
import { findSection, SectionName } from './format/format.ts';
import type { PageCut } from './format/page-index.ts';
import { type EntryStatistics, PropertiesCollector } from './format/properties.ts';
import type { SsTableFrame } from './read/ss-table-file.ts';

export interface Verification {
  readonly blocks: number;
  readonly entries: number;
  /** Bytes of the blocks before compression. */
  readonly blockBytes: number;
}

/**
 * Verifies all blocks. With `onDamaged`, calls it for each damaged block and continues; without it, throws the first
 * error.
 */
export async function verifyBlocks(
  file: string,
  frame: SsTableFrame,
  pacer: Pacer,
  checksum: Checksum,
  read: (block: number) => Promise<Block>,
  onDamaged?: (error: CorruptionError) => void,
): Promise<Verification> {
  const { index } = frame;
  const collector = new PropertiesCollector();
  let before: EntryPosition | undefined;
  let entries = 0;
  let blockBytes = 0;
  let isWhole = true;
  for (let number = 0; number < index.length; number++) {
    try {
      const walk = await verifyBlock(file, frame, number, await read(number), before, collector, pacer, checksum);
      before = walk.before;
      entries += walk.entries;
      blockBytes += walk.block.bytes.length;
    } catch (error) {
      if (onDamaged === undefined || !(error instanceof CorruptionError)) throw error;
      isWhole = false;
      onDamaged(error);
    }
  }
  if (isWhole) checkStatistics(file, frame, collector.statistics());
  return { blocks: index.length, entries, blockBytes };
}

async function verifyBlock(
  file: string,
  frame: SsTableFrame,
  number: number,
  block: Block,
  before: EntryPosition | undefined,
  collector: PropertiesCollector,
  pacer: Pacer,
  checksum: Checksum,
): Promise<BlockWalk> {
  const { index } = frame;
  const walk = new BlockWalk(block, before, frame.pages?.cuts(number) ?? []);
  while (walk.next()) {
    collector.add(walk.at, walk.at.valueLength);
    checkFilter(file, frame, walk.at);
    if (pacer.due()) await pacer.pause();
  }
  const { first } = walk;
  const listed = index.first(number);
  if (!first || compareEntries(first, listed) !== 0 || first.kind !== listed.kind)
    walk.fail('not the first entry that the index tells');
  if (walk.at.row !== index.lastRow(number)) walk.fail('not the last row that the index tells');
  if (walk.entries !== index.entries(number))
    walk.fail(`${walk.entries} entries, ${index.entries(number)} in the index`);
  walk.checkPages(checksum);
  return walk;
}

function checkStatistics(file: string, { properties, footer, sections }: SsTableFrame, found: EntryStatistics): void {
  const propertiesAt = findSection(file, footer.directory, sections, SectionName.properties).offset;
  for (const [name, value] of Object.entries(found)) {
    const stated = properties[name as keyof EntryStatistics];
    // files of early versions have no families
    if (name === 'families' && stated === undefined) continue;
    const same = typeof value === 'object' ? JSON.stringify(stated) === JSON.stringify(value) : value === stated;
    if (!same) throw new CorruptionError(file, propertiesAt, `property "${name}" is not that of the entries`);
  }
}

/** The filter must have every entry. */
function checkFilter(file: string, frame: SsTableFrame, { row, column }: EntryPosition): void {
  const { bloom } = frame;
  if (!bloom || (bloom.mayContainRow(row) && (bloom.kind === 'row' || bloom.mayContainColumn(row, column)))) return;
  const { offset } = findSection(file, frame.footer.directory, frame.sections, SectionName.bloom);
  throw new CorruptionError(file, offset, `the filter does not know row ${quote(row)}`);
}

/** Walks one block and checks what cursors rely on. */
class BlockWalk {
  readonly at = new BlockCursor();
  readonly block: Block;
  readonly #cuts: readonly PageCut[];
  #cutsMet = 0;
  #restarts = 0;
  entries = 0;
  first: EntryPosition | undefined;
  before: EntryPosition | undefined;

  constructor(block: Block, before: EntryPosition | undefined, cuts: readonly PageCut[]) {
    this.#cuts = cuts;
    this.block = block;
    this.before = before;
    this.at.open(block);
  }

  next(): boolean {
    const { at } = this;
    if (!at.next()) {
      if (this.#restarts !== this.block.restarts)
        this.fail(`${this.#restarts} restart points, ${this.block.restarts} listed`);
      return false;
    }
    const { row, column, kind, timestamp } = at;
    const here: EntryPosition = { row, column, kind, timestamp };
    if (this.before && compareEntries(this.before, here) >= 0) this.fail(`the entry at ${at.entryAt} is out of order`);
    const listed = this.#restarts < this.block.restarts && this.block.restart(this.#restarts) === at.entryAt;
    if (at.isRestart !== listed) this.fail(`restart point ${this.#restarts} is elsewhere`);
    if (at.isRestart) this.#restarts++;
    const cut = this.#cuts[this.#cutsMet];
    if (cut?.at === at.entryAt) this.#checkCut(cut, row);
    this.first ??= here;
    this.before = here;
    this.entries++;
    return true;
  }

  /** A page begins with a row, and its separator distinguishes that row from the rows before it. */
  #checkCut({ at, separator }: PageCut, row: ByteString): void {
    const rowBefore = this.before?.row ?? '';
    if (!this.at.isRestart || rowBefore >= separator || separator > row)
      this.fail(`the page at ${at} does not begin with a row of which its separator tells`);
    this.#cutsMet++;
  }

  /** All listed pages were met, and their checksums are those of the block. */
  checkPages(checksum: Checksum): void {
    if (this.#cutsMet !== this.#cuts.length)
      this.fail(`no entry where the page at ${this.#cuts[this.#cutsMet]?.at} begins`);
    let crc = 0;
    let from = 0;
    for (const cut of this.#cuts) {
      crc = checksum(this.block.bytes.subarray(from, cut.at), crc);
      if (crc !== cut.crc) this.fail(`the checksum of the page that ends at ${cut.at} is wrong`);
      from = cut.at;
    }
  }

  fail(what: string): never {
    throw new CorruptionError(this.block.file, this.block.offset, what);
  }
}
