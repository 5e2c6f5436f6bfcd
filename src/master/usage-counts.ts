/**
 * Counts what tables with a quota take on all servers, and tells each server the sums, by which it refuses writes
 * (docs/decisions/0107-usage-and-quotas.md). A database without quotas makes no call.
 */
import type { RequestContext } from '../env/index.ts';
import type { SchemaCache } from '../locator/index.ts';
import { type FamilyUsage, hasQuota, sumUsages } from '../model/index.ts';
import type { Servers } from './servers.ts';

export interface UsageCountsParts {
  readonly schemas: Pick<SchemaCache, 'list'>;
  readonly servers: Pick<Servers, 'callAll'>;
}

export class UsageCounts {
  readonly #parts: UsageCountsParts;

  constructor(parts: UsageCountsParts) {
    this.#parts = parts;
  }

  /** True where a count has something to count. */
  get isNeeded(): boolean {
    return this.#parts.schemas.list('').some(hasQuota);
  }

  /** One count. What a server has that does not answer is missing in it. */
  async run(context: RequestContext): Promise<void> {
    const { schemas, servers } = this.#parts;
    const limited = schemas.list('').filter(hasQuota);
    if (limited.length === 0) return;
    const tableIds = limited.map(({ id }) => id);
    const answers = await servers.callAll('measureUsage', { tableIds }, context);
    const found = new Map<string, FamilyUsage[]>(tableIds.map((tableId) => [tableId, []]));
    for (const tables of answers.values())
      for (const { tableId, families } of tables) found.get(tableId)?.push(...families);
    const tables = [...found].map(([tableId, families]) => ({ tableId, families: sumUsages(families) }));
    await servers.callAll('usageCounted', { tables }, context);
  }
}
