/** Calls that are wrong, each with the code of the refusal: no fault makes one of them right. */
import type { Client } from '../../src/client/index.ts';
import type { Env, RequestContext } from '../../src/env/index.ts';
import type { RowRange } from '../../src/model/index.ts';
import type { ChangeStreamRequest } from '../../src/service/index.ts';

const ALL_ROWS: RowRange = { start: '', end: undefined };
const DAY_MICROS = 86_400_000_000;
const LONG = 1024 * 1024 + 1;

export type RefusedCall = readonly [
  what: string,
  codeName: string,
  call: (context: RequestContext) => Promise<unknown>,
];

export interface RefusedCallsParts {
  readonly client: Client;
  readonly env: Env;
  /** An instance without a change stream in its table. */
  readonly instance: string;
  readonly table: string;
}

export function refusedCalls({ client, env, instance, table }: RefusedCallsParts): readonly RefusedCall[] {
  const { backups, changes, instances, memoryLayers, policies, resources } = client;
  const backup = `${instance}/clusters/c0/backups/absent`;
  const nowMicros = env.clock.nowMicros();
  const newBackup = {
    source: table,
    kind: 'standard',
    expireMicros: nowMicros + 7 * DAY_MICROS,
  } as const;
  const stream = (what: string, request: Partial<ChangeStreamRequest>): RefusedCall => [
    what,
    'INVALID_ARGUMENT',
    async (context) => {
      for await (const _ of changes.readChanges(context, { table, range: ALL_ROWS, ...request }));
    },
  ];
  const token = (text: object): string => Buffer.from(JSON.stringify(text)).toString('base64url');
  const place = { server: 'x', epoch: 1, position: 0, record: 0, row: 0 };
  return [
    ['a backup that is not there', 'NOT_FOUND', (context) => backups.getBackup(context, backup)],
    ['a change of no backup', 'NOT_FOUND', (context) => backups.updateBackup(context, backup, {})],
    ['the deletion of no backup', 'NOT_FOUND', (context) => backups.deleteBackup(context, backup)],
    [
      'a backup in a cluster that is not there',
      'NOT_FOUND',
      (context) => backups.createBackup(context, { ...newBackup, name: `${instance}/clusters/absent/backups/absent` }),
    ],
    [
      'a backup of a table that is not there',
      'NOT_FOUND',
      (context) => backups.createBackup(context, { ...newBackup, name: backup, source: `${instance}/tables/absent` }),
    ],
    [
      'a restoration of no backup',
      'NOT_FOUND',
      (context) => backups.restoreTable(context, `${instance}/tables/absent`, backup),
    ],
    ['the policy of a project', 'INVALID_ARGUMENT', (context) => policies.getPolicy(context, 'projects/local')],
    [
      'the policy of no family',
      'NOT_FOUND',
      (context) => policies.getPolicy(context, `${table}/columnFamilies/absent`),
    ],
    [
      'a policy with an unknown role',
      'INVALID_ARGUMENT',
      (context) => policies.setPolicy(context, table, { bindings: [{ role: 'absent', members: ['allUsers'] }] }),
    ],
    [
      'the memory layer of no cluster',
      'NOT_FOUND',
      (context) => memoryLayers.getMemoryLayer(context, `${instance}/clusters/absent`),
    ],
    ['an instance that is not there', 'NOT_FOUND', (context) => instances.getInstance(context, `${instance}-absent`)],
    [
      'a schema bundle that is not there',
      'NOT_FOUND',
      (context) => resources.find(context, 'schemaBundles', `${table}/schemaBundles/absent`),
    ],
    [
      'a view of no table',
      'NOT_FOUND',
      (context) =>
        resources.create(context, 'authorizedViews', `${instance}/tables/absent/authorizedViews/x`, new Uint8Array(0)),
    ],
    ['a quota of no family', 'NOT_FOUND', (context) => client.setQuota(context, table, { family: 'absent' })],
    ['an undeletion of nothing', 'NOT_FOUND', (context) => client.undeleteTable(context, `${instance}/tables/absent`)],
    [
      'the changes of a table that keeps none',
      'FAILED_PRECONDITION',
      (context) => changes.changeStreamRanges(context, table),
    ],
    stream('a change stream of no rows', { range: { start: 'b', end: 'a' } }),
    stream('a change stream of the future', { startMicros: nowMicros + DAY_MICROS }),
    stream('a change stream that ends before it begins', { startMicros: nowMicros - 1, endMicros: nowMicros - 2 }),
    stream('a change stream from two places', { startMicros: 0, tokens: [{ range: ALL_ROWS, token: '' }] }),
    stream('a token that is none', { tokens: [{ range: ALL_ROWS, token: '?' }] }),
    stream('a token that is too long', { tokens: [{ range: ALL_ROWS, token: 'a'.repeat(LONG) }] }),
    stream('a token of other rows', { tokens: [{ range: { start: '', end: 'm' }, token: '' }] }),
    stream('a token without progress', { tokens: [{ range: ALL_ROWS, token: token({ progress: [] }) }] }),
    stream('a token of no server', {
      tokens: [{ range: ALL_ROWS, token: token({ progress: [{ start: '', fromMicros: 0, after: place }] }) }],
    }),
  ];
}
