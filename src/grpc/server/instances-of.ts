/** The instances of a service that has some. */
import { BigtableError, Code } from '../../base/index.ts';
import type { InstanceService, Service } from '../../service/index.ts';

/** FAILED_PRECONDITION where the service has none: it stands for another server. */
export function instancesOf({ instances }: Service): InstanceService {
  if (instances === undefined) throw new BigtableError(Code.FAILED_PRECONDITION, 'this door has no instances');
  return instances;
}
