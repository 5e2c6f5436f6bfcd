/** Hot tablets: each server has measured its own. */
import type { Env, RequestContext } from '../env/index.ts';
import { type HotTablet, hottest } from '../model/index.ts';
import { callServer } from '../protocol/index.ts';
import {
  checkClusterName,
  checkTimeSpan,
  type HotTabletService,
  MAX_HOT_TABLETS,
  type TimeSpan,
} from '../service/index.ts';
import { onServers } from './each-server.ts';

export interface HotTabletsParts {
  readonly env: Env;
  /** NOT_FOUND where the cluster does not exist. */
  readonly checkCluster: (context: RequestContext, instance: string, cluster: string) => Promise<void>;
}

export class HotTablets implements HotTabletService {
  readonly #parts: HotTabletsParts;

  constructor(parts: HotTabletsParts) {
    this.#parts = parts;
  }

  async listHotTablets(context: RequestContext, cluster: string, span: TimeSpan): Promise<readonly HotTablet[]> {
    const { env, checkCluster } = this.#parts;
    const { instance, id } = checkClusterName(cluster);
    checkTimeSpan(span, env.clock.nowMicros());
    await checkCluster(context, instance, id);
    const { startMicros, endMicros } = span;
    const message = { instance, startMicros, endMicros };
    const answers = await onServers(
      env,
      ({ address }) => callServer(env.transport, address, 'hotTablets', message, context),
      context,
    );
    return hottest(answers.flat(), MAX_HOT_TABLETS);
  }
}
