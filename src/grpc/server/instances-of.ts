/** The instances of a service that has some. */
import { BigtableError, Code, toBigtableError } from '../../base/index.ts';
import type { InstanceService, Service } from '../../service/index.ts';

/** FAILED_PRECONDITION where the service has none: it stands for another server. */
export function instancesOf({ instances }: Service): InstanceService {
  if (instances === undefined) throw new BigtableError(Code.FAILED_PRECONDITION, 'this door has no instances');
  return instances;
}

/** Another may change what an attempt has read. */
const ATTEMPTS = 10;

/** For a change of some fields: it is computed again where others have changed meanwhile. */
export async function untilNotOvertaken<T>(attempt: () => Promise<T>): Promise<T> {
  for (let left = ATTEMPTS - 1; ; left--) {
    try {
      return await attempt();
    } catch (thrown) {
      if (left === 0 || toBigtableError(thrown).code !== Code.ABORTED) throw thrown;
    }
  }
}
