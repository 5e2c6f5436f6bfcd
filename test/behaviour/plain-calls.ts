/** Between the plain model and the library: steps as mutations, rows as plain cells. */
import { type Mutations, type Row, RowMutation } from '../../src/embedded/index.ts';
import type { PlainCell, Step } from './plain-row.ts';

/** The bytes that text of a character a byte stands for. */
export const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1');

export function fill<M extends Mutations>(mutations: M, steps: readonly Step[]): M {
  for (const step of steps) {
    if (step.kind === 'deleteFamily') mutations.deleteFamily(step.family);
    else if (step.kind === 'deleteRow') mutations.deleteRow();
    else {
      const column = { family: step.family, qualifier: bytesOf(step.qualifier) };
      if (step.kind === 'set') mutations.set(column, bytesOf(step.value), step.timestamp);
      else if (step.kind === 'add')
        mutations.add(column, typeof step.input === 'string' ? bytesOf(step.input) : step.input, step.timestamp);
      else if (step.since === undefined && step.until === undefined) mutations.delete(column);
      else
        mutations.delete(column, {
          ...(step.since !== undefined && { since: step.since }),
          ...(step.until !== undefined && { until: step.until }),
        });
    }
  }
  return mutations;
}

export function mutationOf(row: string, steps: readonly Step[]): RowMutation {
  return fill(new RowMutation(bytesOf(row)), steps);
}

export function plainCellsOf(row: Row): PlainCell[] {
  const key = row.key.toString('latin1');
  return row.cells.map(({ family, qualifier, timestamp, value }) => ({
    row: key,
    family,
    qualifier: qualifier.toString('latin1'),
    timestamp,
    value: value.toString('latin1'),
  }));
}
