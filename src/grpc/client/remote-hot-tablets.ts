/** Hot tablets over the Cloud API of any Bigtable server. */
import type { RequestContext } from '../../env/index.ts';
import type { HotTablet } from '../../model/index.ts';
import { type HotTabletService, MAX_HOT_TABLETS, type TimeSpan } from '../../service/index.ts';
import type { RpcClient } from '../../wire/index.ts';
import { hotTabletOf } from '../convert/hot-tablet.ts';
import { timestampOf } from '../convert/time.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { call } from './remote-control.ts';

export class RemoteHotTablets implements HotTabletService {
  readonly #client: RpcClient;

  constructor(client: RpcClient) {
    this.#client = client;
  }

  async listHotTablets(context: RequestContext, cluster: string, span: TimeSpan): Promise<readonly HotTablet[]> {
    const request = {
      parent: cluster,
      startTime: timestampOf(span.startMicros),
      endTime: timestampOf(span.endMicros),
    };
    const found: HotTablet[] = [];
    for (let pageToken = ''; ; ) {
      const page = await call(this.#client, context, BigtableInstanceAdmin.method.listHotTablets, {
        ...request,
        pageToken,
      });
      found.push(...page.hotTablets.map(hotTabletOf));
      pageToken = page.nextPageToken;
      if (pageToken === '' || found.length >= MAX_HOT_TABLETS) return found.slice(0, MAX_HOT_TABLETS);
    }
  }
}
