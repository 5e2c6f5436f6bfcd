/**
 * Judges the rows of the table against what was acknowledged: no acknowledged node is missing (a hole), no row is there
 * that no client wrote, and each node is as it was written and refers to a node that was acknowledged before it.
 *
 * A node of unknown outcome may be there or not. Memory: a bit for each node, and a bounded number of findings.
 */
import { type Chain, Bits } from './chain.ts';
import { keyOf, type NodeName, nameIn, NODE, nodeOf, PREV } from './nodes.ts';

export interface FoundRow {
  readonly key: string;
  /** By column: the values of all cells, in the order in which they came. */
  readonly cells: readonly { readonly column: string; readonly text: string }[];
}

export interface BadRow {
  readonly key: string;
  /** It is missing; otherwise it is there and wrong. */
  readonly isHole: boolean;
  readonly what: string;
}

export interface VerificationCounts {
  rows: number;
  /** Nodes of unknown outcome that are there. */
  unknownFound: number;
  /** Acknowledged nodes that are missing. */
  holes: number;
  /** Rows that are wrong. */
  wrong: number;
}

const MAX_SHOWN = 20;

export class Verification {
  readonly counts: VerificationCounts = { rows: 0, unknownFound: 0, holes: 0, wrong: 0 };
  /** The first rows that are wrong or missing. */
  readonly badRows: BadRow[] = [];
  readonly #seed: number;
  readonly #chains: readonly Chain[];
  readonly #found: readonly Bits[];

  constructor(seed: number, chains: readonly Chain[]) {
    this.#seed = seed;
    this.#chains = chains;
    this.#found = chains.map(({ size }) => new Bits(size));
  }

  /** Each row of the table, once, in any order. */
  see(row: FoundRow): void {
    this.counts.rows++;
    const what = this.#judge(row);
    if (what === undefined) return;
    this.counts.wrong++;
    this.#show({ key: row.key, isHole: false, what });
  }

  /** After all rows: looks for holes. */
  end(): void {
    for (const [number, chain] of this.#chains.entries())
      for (const index of chain.missingIn(this.#found[number]!)) {
        this.counts.holes++;
        const key = keyOf(this.#seed, { chain: number, index });
        this.#show({ key, isHole: true, what: `node ${number}/${index} was acknowledged and is missing` });
      }
  }

  /** What is wrong with it. */
  #judge({ key, cells }: FoundRow): string | undefined {
    const name = nameIn(cells.find(({ column }) => column === NODE)?.text ?? '');
    if (name === undefined) return `it is no node: ${JSON.stringify(cells)}`;
    const node = nodeOf(this.#seed, name);
    const title = `node ${name.chain}/${name.index}`;
    const chain = this.#chains[name.chain];
    if (chain === undefined || name.index >= chain.begun) return `${title} was never written`;
    if (node.key !== key) return `${title} has the key ${node.key}`;
    const found = this.#found[name.chain]!;
    if (found.has(name.index)) return `${title} is there twice`;
    found.add(name.index);
    if (!chain.isAcknowledged(name.index)) this.counts.unknownFound++;
    const prev = this.#prevKey(name, chain);
    const [first, second] = cells;
    const isWhole =
      cells.length === 2 &&
      first!.column === NODE &&
      first!.text === node.text &&
      second!.column === PREV &&
      second!.text === prev;
    return isWhole ? undefined : `${title} with prev ${JSON.stringify(prev)} was found as ${JSON.stringify(cells)}`;
  }

  #prevKey({ chain: number, index }: NodeName, chain: Chain): string {
    const prev = chain.prevOf(index);
    return prev === undefined ? '' : keyOf(this.#seed, { chain: number, index: prev });
  }

  #show(bad: BadRow): void {
    if (this.badRows.length < MAX_SHOWN) this.badRows.push(bad);
  }
}
