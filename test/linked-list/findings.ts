/** What a linked-list test judges, and what it has found to be wrong. */
export const JUDGED = {
  holes: 'no acknowledged node is missing',
  nodes: 'nodes are as they were written, and no other rows are there',
  served: 'writes go on after each fault, and the table can be read',
  splits: 'the table is split while it is written',
  processes: 'processes end when a fault explains it, and in good order, and no log is alarming',
} as const;

export interface Finding {
  readonly kind: keyof typeof JUDGED;
  readonly what: string;
}
