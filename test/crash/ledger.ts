/**
 * The work of a writer that may die at any moment, and what must be found after it: shared by writer.ts and
 * of those that kill it.
 *
 * Each of WRITERS writers owns its rows and does iteration 1, 2, 3 … of four steps, one after the other, each
 * acknowledged before the next begins: (1) the row of this iteration, (2) in every fifth iteration the deletion of an
 * earlier row, (3) an increment of its counter, (4) its register, two cells of one row, set to the iteration's number.
 * Then it prints "writer iteration". So after a death the last number printed, n, says of every row what it must be,
 * but for what the unfinished iteration n + 1 may have done.
 */
import assert from 'node:assert/strict';
import type { Database, Table } from '../../src/embedded/index.ts';

export const TABLE = 'crash';
export const WRITERS = 16;
const DELETE_EVERY = 5;
const DELETE_BACK = 3;
const LARGE_EVERY = 40;
const LARGE_BYTES = 200_000;

export const rowKey = (writer: number, iteration: number): string =>
  `row-${writer}-${String(iteration).padStart(9, '0')}`;
export const registerKey = (writer: number): string => `register-${writer}`;
export const counterKey = (writer: number): string => `counter-${writer}`;

/** The row that this iteration deletes, or 0. */
export const deletedIn = (iteration: number): number =>
  iteration % DELETE_EVERY === 0 ? Math.max(0, iteration - DELETE_BACK) : 0;

const isDeletedBy = (iteration: number, last: number): boolean =>
  iteration + DELETE_BACK <= last && (iteration + DELETE_BACK) % DELETE_EVERY === 0;

/** The value of a row: a function of its key alone, incompressible, small but for every fortieth. */
export function valueOf(writer: number, iteration: number): Buffer {
  let state = Math.imul(writer + 1, 0x9e3779b1) ^ Math.imul(iteration, 0x85ebca6b);
  const length = iteration % LARGE_EVERY === 0 ? LARGE_BYTES : 50 + ((state >>> 8) % 2000);
  const value = Buffer.alloc(length);
  for (let at = 0; at < length; at++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    value[at] = state >>> 24;
  }
  return value;
}

/** The last iteration that each writer's output acknowledges; `lines` are those it printed, the last perhaps torn. */
export function acknowledged(output: string): number[] {
  const last = new Array<number>(WRITERS).fill(0);
  for (const line of output.split('\n').slice(0, -1)) {
    const [writer, iteration] = line.split(' ').map(Number);
    if (writer !== undefined && iteration !== undefined && writer < WRITERS)
      last[writer] = Math.max(last[writer] as number, iteration);
  }
  return last;
}

async function registerOf(table: Table, writer: number): Promise<number> {
  const row = await table.get(registerKey(writer));
  const [a, b] = [row?.get('f:a')?.text ?? '0', row?.get('f:b')?.text ?? '0'];
  assert.equal(a, b, `${registerKey(writer)}: its two cells were written as one`);
  return Number(a);
}

async function checkWriter(table: Table, writer: number, last: number): Promise<number> {
  const register = await registerOf(table, writer);
  const known = `writer ${writer}, acknowledged up to iteration ${last}`;
  assert.ok(register === last || register === last + 1, `${known}: the register says ${register}`);
  const counter = Number((await table.getCell(counterKey(writer), 'f:n'))?.int ?? 0n);
  assert.ok(
    counter >= register && counter <= last + 1,
    `${known}: the counter says ${counter}, the register ${register}`,
  );
  let next = 1;
  for await (const row of table.scan({ prefix: `row-${writer}-` })) {
    const iteration = Number(row.name.slice(`row-${writer}-`.length));
    for (; next < iteration; next++) assert.ok(isDeletedBy(next, last + 1), `${known}: row ${next} is lost`);
    assert.ok(iteration <= last + 1, `${known}: row ${iteration} was never written`);
    assert.ok(!isDeletedBy(iteration, last), `${known}: row ${iteration} is back from its deletion`);
    assert.ok(row.get('f:v')?.value.equals(valueOf(writer, iteration)), `${known}: row ${iteration} has another value`);
    next = iteration + 1;
  }
  for (; next <= last; next++) assert.ok(isDeletedBy(next, last + 1), `${known}: row ${next} is lost`);
  return register;
}

/**
 * Fails on the first row that is lost, wrong or too many. Returns where each writer stands now: the acknowledged of the
 * next round.
 */
export async function checkLedger(database: Database, last: readonly number[]): Promise<number[]> {
  if (!(await database.hasTable(TABLE))) {
    assert.ok(
      last.every((iteration) => iteration === 0),
      'the table is lost',
    );
    return [...last];
  }
  const table = database.table(TABLE);
  const now: number[] = [];
  for (let writer = 0; writer < WRITERS; writer++) now.push(await checkWriter(table, writer, last[writer] as number));
  return now;
}
