/** What a cluster test judges, and what it has found to be wrong. */
export const JUDGED = {
  linearizable: 'every row is linearizable',
  durable: 'no acknowledged write is lost, and no read is stale',
  served: 'tablets are served again in time',
  masters: 'data calls do not notice that a master is lost, and admin calls are answered in time',
  processes: 'processes end when a fault explains it, and in good order, and no log is alarming',
} as const;

export interface Finding {
  readonly kind: keyof typeof JUDGED;
  readonly what: string;
}
