/** The policies of resources that are deleted. */
import { listFiles, removeSettled } from '../env/index.ts';
import { policyPath } from './policy-file.ts';

type Parts = Parameters<typeof removeSettled>[0];

/**
 * Removes the policy of the resource and of all that is in it. Before the resource goes: a later one of its name must
 * not have it.
 */
export async function removePolicies(parts: Parts, resource: string): Promise<void> {
  const own = await parts.lockService.read(policyPath(resource));
  const inside = await listFiles(parts.lockService, policyPath(`${resource}/`));
  for (const { path, version } of own === undefined ? inside : [...inside, own])
    await removeSettled(parts, path, { version });
}
