/** Resources that are kept as they are go with their parent. */
import type { RequestContext } from '../env/index.ts';
import type { Service } from './service.ts';

/**
 * Removes what was kept for a parent that is deleted. What cannot be removed now is not seen again, because it names
 * its owner: the deletion has happened, and is answered so.
 */
export async function forgetResources(
  { resources }: Pick<Service, 'resources'>,
  context: RequestContext,
  parent: string,
): Promise<void> {
  await resources?.removeAllOf(context, parent).catch(() => {});
}
