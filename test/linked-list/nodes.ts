/**
 * The nodes of a linked-list test. A node is a row whose key is a hash of the node's name and the seed, so that
 * neighbours of a list lie anywhere in the table; its cell `prev` has the key of another node. All of a node but its
 * `prev` is a function of its name, so that a reader needs no memory of what was written.
 */
import { hash } from 'node:crypto';

export const TABLE = 'linked-list';
export const FAMILY = 'd';
/** What the node is, and bytes that only this node has. */
export const NODE = `${FAMILY}:node`;
/** The key of the node that it refers to; empty for the first one of a list. */
export const PREV = `${FAMILY}:prev`;

const KEY_DIGITS = 16;
const NODE_FORM = /^(\d+)\/(\d+) /;

export interface NodeName {
  readonly chain: number;
  readonly index: number;
}

export interface Node {
  readonly key: string;
  /** The value of the cell NODE. */
  readonly text: string;
}

export function nodeOf(seed: number, { chain, index }: NodeName): Node {
  const digest = hash('sha512', `${seed}/${chain}/${index}`, 'hex');
  return { key: digest.slice(0, KEY_DIGITS), text: `${chain}/${index} ${digest.slice(KEY_DIGITS)}` };
}

export const keyOf = (seed: number, name: NodeName): string => nodeOf(seed, name).key;

/** The name that the value of a cell NODE begins with; undefined if it has another form. */
export function nameIn(text: string): NodeName | undefined {
  const [, chain, index] = NODE_FORM.exec(text) ?? [];
  return chain === undefined ? undefined : { chain: Number(chain), index: Number(index) };
}
