/**
 * Assigns column families to the locality groups of a schema (paper section 6). Made once for each schema.
 *
 * A family that moved to another group leaves its cells in the files of the old group until a compaction moves them.
 * Files name the families they hold, so that reads and compactions never rely on the schema alone.
 */
import { derived, ownOf } from '../../base/index.ts';
import {
  DEFAULT_GROUP,
  type LocalityGroup,
  storageFamily,
  type TableSchema,
  TOKEN_FAMILY,
  TOKEN_GROUP,
} from '../../model/index.ts';
import type { SsTable } from '../../sstable/index.ts';

const NO_TUNING: LocalityGroup = {};
/** Most tokens that are looked for are new, also those of a row that has many. */
const TOKEN_TUNING: LocalityGroup = { bloomFilter: 'row-column' };

export class Grouping {
  readonly #groupOf = new Map<string, string>();
  readonly #tuning: Readonly<Record<string, LocalityGroup>>;
  /** Groups that have a family, by name. That of tokens is not among them. */
  readonly names: readonly string[];

  constructor(schema: TableSchema) {
    for (const { name, generation, group } of Object.values(schema.families))
      this.#groupOf.set(storageFamily(name, generation), group ?? DEFAULT_GROUP);
    this.#tuning = schema.groups ?? {};
    this.names = [...new Set(this.#groupOf.values())].sort();
    this.#groupOf.set(TOKEN_FAMILY, TOKEN_GROUP);
  }

  /** Undefined for a family that was dropped. */
  groupOf(storedFamily: string): string | undefined {
    return this.#groupOf.get(storedFamily);
  }

  /** The names under which the families of the group are stored. */
  familiesIn(group: string): string[] {
    return [...this.#groupOf].filter(([, of]) => of === group).map(([stored]) => stored);
  }

  tuning(group: string): LocalityGroup {
    if (group === TOKEN_GROUP) return TOKEN_TUNING;
    return ownOf(this.#tuning, group) ?? NO_TUNING;
  }

  /** True if the file holds a family that belongs to another group now. */
  isMisplaced({ properties }: Pick<SsTable, 'properties'>): boolean {
    const { group, families } = properties;
    if (families === undefined) return group !== DEFAULT_GROUP || this.names.some((name) => name !== DEFAULT_GROUP);
    return families.some(({ family }) => {
      const wanted = this.groupOf(family);
      return wanted !== undefined && wanted !== group;
    });
  }
}

export const groupingOf = derived((schema: TableSchema) => new Grouping(schema));
