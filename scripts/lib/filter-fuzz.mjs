/**
 * The fuzz target `filters`: bytes are read as a filter, a row and its values. The run must give what the plain model
 * says, and no call of it may do more than a bounded number of units of work: pushes into stages are counted from
 * outside.
 */
import assert from 'node:assert/strict';
import { BigtableError, Code, fromBytes, toBytes } from '../../dist/src/base/index.js';
import { EXPRESSIONS, expected, FAMILIES, HALF, order } from '../../dist/src/filter/fixtures.js';
import { compileFilter, Hint } from '../../dist/src/filter/index.js';
import * as stages from '../../dist/src/filter/stages.js';
import { LIMITS } from '../../dist/src/model/index.js';

/** @typedef {import('../../dist/src/filter/index.js').FilterProgram} FilterProgram */
/** @typedef {import('../../dist/src/filter/index.js').FilterRun} FilterRun */
/** @typedef {import('../../dist/src/filter/index.js').RowFilter} RowFilter */
/** @typedef {import('../../dist/src/model/index.js').Cell} Cell */

/** The units of one step, and those of the one push that may overdraw it. */
const MAX_PUSHES = 65_536 + 2 * LIMITS.default.filterPushes;
const MAX_MODEL_CELLS = 2000;
const VALUES = ['', 'x', 'y', 'b', '\n', '\xff', 'xb', 'x'.repeat(300), 'y'.repeat(3000)];
const QUALIFIERS = ['', 'x', 'x\n', 'xx', 'y', '\xff', 'x'.repeat(500)];
const ROWS = ['a', 'row', 'x\n', 'x'.repeat(400)];

let pushes = 0;
for (const { prototype } of Object.values(stages)) {
  const push = prototype?.push;
  if (push === undefined || !Object.hasOwn(prototype, 'push')) continue;
  prototype.push = function (cell) {
    pushes++;
    return push.call(this, cell);
  };
}

/** Reads choices from bytes; at their end every choice is the first. */
class Choices {
  #bytes;
  #at = 0;

  /** @param {Buffer} bytes */
  constructor(bytes) {
    this.#bytes = bytes;
  }

  /** @param {number} count */
  below(count) {
    return this.#at < this.#bytes.length ? this.#bytes[this.#at++] % count : 0;
  }

  /**
   * @template T
   * @param {readonly T[]} list
   */
  of(list) {
    return list[this.below(list.length)];
  }

  bound() {
    return this.below(2) === 0 ? undefined : { value: this.of(['', 'x', 'xb', 'y']), closed: this.below(2) === 0 };
  }

  instant() {
    return this.below(2) === 0 ? undefined : this.below(6);
  }

  /**
   * @param {number} depth
   * @returns {RowFilter[]}
   */
  parts(depth) {
    return Array.from({ length: 2 + this.below(4) }, () => this.filter(depth + 1));
  }

  /**
   * @param {number} depth
   * @returns {RowFilter}
   */
  filter(depth) {
    const regex = () => this.of(EXPRESSIONS)[0];
    switch (this.below(depth < 4 ? 26 : 16)) {
      case 1:
        return { kind: 'blockAll' };
      case 2:
        return { kind: 'rowKeyRegex', regex: this.of(['a', '.*', 'x.*', '[^b]+']) };
      case 3:
        return { kind: 'rowSample', probability: this.of([0.2, 0.8]) };
      case 4:
        return { kind: 'familyNameRegex', regex: regex() };
      case 5:
        return { kind: 'columnQualifierRegex', regex: regex() };
      case 6:
        return { kind: 'columnRange', family: this.of(FAMILIES), start: this.bound(), end: this.bound() };
      case 7:
        return { kind: 'timestampRange', range: { start: this.instant(), end: this.instant() } };
      case 8:
        return { kind: 'valueRegex', regex: regex() };
      case 9:
        return { kind: 'valueRange', start: this.bound(), end: this.bound() };
      case 10:
        return { kind: 'valueBitmask', mask: this.of(['\x01', '\x7f', 'xb', '\0']) };
      case 11:
        return { kind: 'cellsPerRowOffset', cells: this.below(5) };
      case 12:
        return { kind: 'cellsPerRowLimit', cells: 1 + this.below(4) };
      case 13:
        return { kind: 'cellsPerColumnLimit', cells: 1 + this.below(4) };
      case 14:
        return { kind: 'stripValue' };
      case 15:
        return { kind: 'applyLabel', label: 'one' };
      case 16:
      case 17:
      case 18:
        return { kind: 'chain', filters: this.parts(depth) };
      case 19:
      case 20:
      case 21:
        return { kind: 'interleave', filters: this.parts(depth) };
      case 22:
      case 23:
      case 24:
        return {
          kind: 'condition',
          predicate: this.filter(depth + 1),
          whenTrue: this.below(3) === 0 ? undefined : this.filter(depth + 1),
          whenFalse: this.below(3) === 0 ? undefined : this.filter(depth + 1),
        };
      case 25:
        return { kind: 'sink' };
      default:
        return { kind: 'passAll' };
    }
  }

  /** @returns {Cell[]} */
  cells() {
    const columns = new Map();
    for (let left = this.below(6); left > 0; left--)
      columns.set(`${this.below(3)}/${this.below(QUALIFIERS.length)}`, 1 + this.below(3));
    const cells = [...columns].flatMap(([column, versions]) => {
      const [family, qualifier] = column.split('/').map(Number);
      return Array.from({ length: versions }, (_, timestamp) => ({
        family: FAMILIES[family],
        qualifier: QUALIFIERS[qualifier],
        timestamp,
        value: toBytes(this.of(VALUES)),
      }));
    });
    return cells.sort(order);
  }
}

/**
 * Calls the run step by step; each step is bounded.
 *
 * @param {FilterRun} run
 * @param {() => Hint} first
 * @param {Cell[]} out
 */
function whole(run, first, out) {
  for (let next = first; ; next = () => run.resume(out)) {
    pushes = 0;
    const hint = next();
    assert.ok(pushes <= MAX_PUSHES, `${pushes} pushes in one step`);
    if (hint !== Hint.busy) return hint;
  }
}

/**
 * @param {FilterProgram} program
 * @param {string} row
 * @param {Cell[]} cells
 */
function through(program, row, cells) {
  /** @type {Cell[]} */
  const out = [];
  const run = program.run();
  if (whole(run, () => run.startRow(row), out) === Hint.skipRow) return out;
  for (const cell of cells) if (whole(run, () => run.push(cell, out), out) === Hint.skipRow) break;
  whole(run, () => run.endRow(out), out);
  assert.equal(run.heldBytes, 0);
  return out;
}

/**
 * Long values are told apart by their lengths.
 *
 * @param {Cell} cell
 */
const words = ({ family, qualifier, timestamp, value, labels }) =>
  `${family}:${qualifier.length > 9 ? qualifier.length : qualifier}@${timestamp}=${value.length > 9 ? value.length : fromBytes(value)}#${labels ?? ''}`;
/**
 * Copies of one cell may come in any order.
 *
 * @param {Cell[]} cells
 */
const canonical = (cells) => cells.map(words).sort();

/** @param {Buffer} bytes */
function run(bytes) {
  const choices = new Choices(bytes);
  const filter = choices.filter(0);
  const row = choices.of(ROWS);
  const cells = choices.cells();
  /** @type {FilterProgram} */
  let program;
  try {
    program = compileFilter(filter, { limits: LIMITS.default, random: HALF, families: FAMILIES });
  } catch (error) {
    if (error instanceof BigtableError && error.code === Code.INVALID_ARGUMENT) return;
    throw error;
  }
  const out = through(program, row, cells);
  if (program.blocksAll) assert.equal(out.length, 0);
  if (out.length > MAX_MODEL_CELLS || program.unitsPerCell > MAX_MODEL_CELLS) return;
  const { main, sunk } = expected(filter, row, cells);
  assert.deepEqual(canonical(out), canonical([...main, ...sunk]));
  for (let i = 1; i < out.length; i++) assert.ok(order(out[i - 1], out[i]) <= 0, 'in order');
}

export const filters = {
  name: 'filters',
  seeds: [
    Buffer.from(Array.from({ length: 60 }, (_, i) => (i * 37 + 11) & 0xff)),
    Buffer.from(Array.from({ length: 200 }, (_, i) => (i * i * 13 + 16) & 0xff)),
    // a chain of interleaves, of conditions, and both
    Buffer.from([
      16, 2, 19, 0, 0, 0, 19, 1, 0, 12, 2, 8, 3, 22, 8, 1, 1, 14, 1, 0, 1, 3, 0, 0, 2, 1, 1, 2, 2, 1, 3, 1, 2, 3, 4,
    ]),
    Buffer.from([
      19, 2, 22, 12, 1, 1, 19, 0, 13, 2, 14, 1, 25, 16, 1, 22, 5, 3, 1, 0, 1, 14, 25, 8, 2, 1, 4, 0, 1, 2, 1, 2, 2, 5,
      6, 7, 8,
    ]),
  ],
  run,
};
