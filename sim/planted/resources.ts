/** Bugs of what is beside rows: front doors that follow policies, quotas, instances, backups that tables ask for. */
import type { PlantedBug } from './bug.ts';

export const RESOURCE_BUGS: readonly PlantedBug[] = [
  {
    name: 'R1',
    title: 'a front door does not read the files that it is told of, and waits for its watch',
    changes: [
      {
        file: 'client/client.ts',
        text: '...this.#doorFiles().map((files) => files.changed(path)),',
        wrong: "...(path === '' ? this.#doorFiles().map((files) => files.changed(path)) : []),",
      },
    ],
  },
  {
    name: 'R2',
    title: 'a write is not compared with its quota',
    changes: [
      {
        file: 'tabletserver/row-calls.ts',
        text: 'quotas.admit(schema, row, mutations);',
        wrong: "if (row === '') quotas.admit(schema, row, mutations);",
      },
    ],
  },
  {
    name: 'R3',
    title: 'a quota refuses deletions, too',
    changes: [
      { file: 'tabletserver/quota-ledger.ts', text: 'if (added.total === 0) return undefined;', wrong: '' },
      {
        file: 'tabletserver/quota-ledger.ts',
        text: 'const exceeded = exceededBy(quotaBytes, this.usedBytes(), added.total);',
        wrong: 'const exceeded = exceededBy(quotaBytes, this.usedBytes() + 2, added.total);',
      },
    ],
  },
  {
    name: 'R4',
    title: 'an instance that is deleted leaves one of its tables',
    changes: [
      {
        file: 'resources/instances.ts',
        text: 'for (const table of names) {',
        wrong: 'for (const table of names.slice(1)) {',
      },
    ],
  },
  {
    name: 'R5',
    title: 'the backups that a table asks for fail',
    changes: [
      {
        file: 'master/automated-backups.ts',
        text: 'await backups.create(wanted, context);',
        wrong: "await backups.create({ ...wanted, source: '' }, context);",
      },
    ],
  },
];
