import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Chain } from './chain.ts';
import { type NodeName, NODE, nodeOf, PREV } from './nodes.ts';
import { type FoundRow, Verification } from './verification.ts';

const SEED = 3;
const WIDTH = 4;
const SIZE = 30;

interface Written {
  readonly chains: readonly Chain[];
  /** All nodes that were acknowledged, and those of unknown outcome that took effect. */
  readonly rows: FoundRow[];
  readonly unknown: readonly NodeName[];
}

type Outcome = 'acknowledged' | 'there' | 'not there';

/** Chains that end early, with the outcomes in their order; `acknowledged` when there are no more. */
function written(begun: readonly number[], outcomes: readonly Outcome[] = []): Written {
  const rows: FoundRow[] = [];
  const unknown: NodeName[] = [];
  let next = 0;
  const chains = begun.map((count, number) => {
    const chain = new Chain(SIZE, WIDTH);
    while (!chain.isComplete && chain.begun < count) {
      for (const index of chain.begin()) {
        const outcome = outcomes[next++] ?? 'acknowledged';
        if (outcome !== 'not there') rows.push(rowOf({ chain: number, index }, chain.prevOf(index)));
        if (outcome === 'acknowledged') chain.acknowledge(index);
        else unknown.push({ chain: number, index });
      }
    }
    return chain;
  });
  return { chains, rows, unknown };
}

function rowOf(name: NodeName, prev: number | undefined): FoundRow {
  const { key, text } = nodeOf(SEED, name);
  const prevKey = prev === undefined ? '' : nodeOf(SEED, { chain: name.chain, index: prev }).key;
  return {
    key,
    cells: [
      { column: NODE, text },
      { column: PREV, text: prevKey },
    ],
  };
}

function verify({ chains, rows }: Written): Verification {
  const verification = new Verification(SEED, chains);
  for (const row of rows) verification.see(row);
  verification.end();
  return verification;
}

/** What is found where one row is replaced by others. */
function whatIsFound(meddle: (row: FoundRow) => readonly FoundRow[], at = 0): readonly string[] {
  const all = written([SIZE, 11]);
  all.rows.splice(at, 1, ...meddle(all.rows[at]!));
  return verify(all).badRows.map(({ what }) => what);
}

/** The number of the row of node 0/9. */
const NINTH = 9;

const withCells = ({ key, cells }: FoundRow, ...more: FoundRow['cells']): FoundRow => ({
  key,
  cells: [...cells, ...more],
});

describe('the verification of a linked list', () => {
  test('whatever the outcomes are, a table that nobody meddled with is right', () => {
    const outcomes = fc.array(fc.constantFrom<Outcome>('acknowledged', 'there', 'not there'), { maxLength: 2 * SIZE });
    const begun = fc.array(fc.nat(SIZE), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(begun, outcomes, (counts, drawn) => {
        const all = written(counts, drawn);
        const { counts: found, badRows } = verify(all);
        assert.deepEqual(badRows, []);
        const acknowledged = all.chains.reduce((sum, chain) => sum + chain.acknowledged, 0);
        assert.deepEqual(found, {
          rows: all.rows.length,
          unknownFound: all.rows.length - acknowledged,
          holes: 0,
          wrong: 0,
        });
      }),
    );
  });

  test('each acknowledged node that is missing is a hole', () => {
    const count = written([SIZE, 11]).rows.length;
    for (let i = 0; i < count; i++) {
      const found = whatIsFound(() => [], i);
      assert.equal(found.length, 1);
      assert.match(found[0]!, /^node [01]\/\d+ was acknowledged and is missing$/);
    }
  });

  test('a node refers to the last acknowledged one at its place', () => {
    const [chain] = written([3 * WIDTH], ['acknowledged', 'acknowledged', 'there', 'not there', 'there']).chains;
    const prevs = Array.from({ length: 3 * WIDTH }, (_, i) => chain!.prevOf(i));
    assert.deepEqual(prevs, [
      ...[undefined, undefined, undefined, undefined],
      ...[0, 1, undefined, undefined],
      ...[0, 5, 6, 7],
    ]);
  });

  test('a changed prev is found', () => {
    const changed = rowOf({ chain: 0, index: NINTH }, 1);
    assert.match(whatIsFound(() => [changed], NINTH).join(), /^node 0\/9 with prev "[0-9a-f]{16}" was found as/);
  });

  test('a prev that is missing, and a prev where there is none, are found', () => {
    const missing = whatIsFound(({ key, cells }) => [{ key, cells: cells.slice(0, 1) }], NINTH);
    const added = whatIsFound(() => [rowOf({ chain: 0, index: 0 }, 5)]);
    assert.match(missing.join(), /^node 0\/9 with prev/);
    assert.match(added.join(), /^node 0\/0 with prev "" was found as/);
  });

  test('a node of nowhere is found', () => {
    const [beyond, other] = [rowOf({ chain: 1, index: 13 }, 9), rowOf({ chain: 2, index: 0 }, undefined)];
    const found = whatIsFound((row) => [row, beyond, other, { key: 'a', cells: [{ column: NODE, text: 'a' }] }]);
    assert.match(found[0]!, /^node 1\/13 was never written$/);
    assert.match(found[1]!, /^node 2\/0 was never written$/);
    assert.match(found[2]!, /^it is no node/);
    assert.equal(found.length, 3);
  });

  test('a row at the key of another node is found, and the node is a hole', () => {
    const found = whatIsFound(({ cells }) => [{ key: nodeOf(SEED, { chain: 0, index: 1 }).key, cells }]);
    assert.match(found.join('\n'), /^node 0\/0 has the key [0-9a-f]{16}\nnode 0\/0 was acknowledged and is missing$/);
  });

  test('a node that comes twice is found', () => {
    assert.deepEqual(
      whatIsFound((row) => [row, row]),
      ['node 0/0 is there twice'],
    );
  });

  test('a changed value, and a further cell, are found', () => {
    const changed = whatIsFound(({ key, cells: [node, prev] }) => [
      { key, cells: [{ ...node!, text: `${node!.text}!` }, prev!] },
    ]);
    const added = whatIsFound((row) => [withCells(row, { column: PREV, text: '' })]);
    for (const found of [changed, added]) assert.match(found.join(), /^node 0\/0 with prev "" was found as/);
  });

  test('the findings that are shown are few, and all are counted', () => {
    const all = written([SIZE, SIZE]);
    const { badRows, counts } = verify({ ...all, rows: [] });
    assert.equal(counts.holes, 2 * SIZE);
    assert.ok(badRows.length > 0 && badRows.length < counts.holes);
  });

  test('the outcome of a generation is final when the next one begins', () => {
    const chain = new Chain(SIZE, WIDTH);
    chain.begin();
    chain.begin();
    assert.throws(() => chain.acknowledge(0), /final/);
    chain.acknowledge(WIDTH);
    assert.throws(() => chain.acknowledge(WIDTH), /once/);
  });
});
