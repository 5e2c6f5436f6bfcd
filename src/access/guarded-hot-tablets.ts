/**
 * Hot tablets, as far as the caller has rights on their instance. Tablets begin and end at keys of rows: those of a
 * table whose keys the caller may not know are listed without them.
 */
import type { RequestContext } from '../env/index.ts';
import type { HotTablet } from '../model/index.ts';
import { checkClusterName, type HotTabletService, type TimeSpan } from '../service/index.ts';
import type { Gate } from './gate.ts';

export class GuardedHotTablets implements HotTabletService {
  readonly #tablets: HotTabletService;
  readonly #gate: Gate;

  constructor(tablets: HotTabletService, gate: Gate) {
    this.#tablets = tablets;
    this.#gate = gate;
  }

  async listHotTablets(context: RequestContext, cluster: string, span: TimeSpan): Promise<readonly HotTablet[]> {
    const { instance } = checkClusterName(cluster);
    this.#gate.check(context, 'ListHotTablets', 'bigtable.hotTablets.list', instance);
    const all = await this.#tablets.listHotTablets(context, cluster, span);
    return all.map((each) => (this.#mayKnowKeys(context, each.table) ? each : { ...each, range: undefined }));
  }

  #mayKnowKeys({ principal }: RequestContext, table: string): boolean {
    const { rights } = this.#gate;
    return rights.allows(principal, 'bigtable.tables.sampleRowKeys', table) && rights.readsAll(principal, table);
  }
}
