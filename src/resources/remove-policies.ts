/** The policies of resources that are deleted. */
import { listFiles, type LockService, removeSettled } from '../env/index.ts';
import { policyPath } from './policy-file.ts';

type Parts = Parameters<typeof removeSettled>[0] & { readonly lockService: LockService };

/**
 * Removes the policy of the resource and of all that is in it. Before the resource goes: a later one of its name must
 * not have it. Returns the paths of their files.
 */
export async function removePolicies(parts: Parts, resource: string): Promise<string[]> {
  const own = await parts.lockService.read(policyPath(resource));
  const inside = await listFiles(parts.lockService, policyPath(`${resource}/`));
  const all = own === undefined ? inside : [...inside, own];
  for (const { path, version } of all) await removeSettled(parts, path, { version });
  return all.map(({ path }) => path);
}
