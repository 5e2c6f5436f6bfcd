/** The policies that are in force on a table and its families: a backup keeps them. */
import { listFiles, type LockService } from '../env/index.ts';
import type { SourcePolicy, TableSchema } from '../model/index.ts';
import { ownerText } from './policy-cache.ts';
import { decodePolicy, type PolicyFile, policyPath } from './policy-file.ts';

/** One that cannot be read gives nothing to anyone. */
export async function policiesOfTable(lockService: LockService, schema: TableSchema): Promise<SourcePolicy[]> {
  const { name: table, families } = schema;
  const own = policyPath(table);
  const ofFamilies = `${own}/columnFamilies/`;
  const found: SourcePolicy[] = [];
  for (const { path, contents } of await listFiles(lockService, own)) {
    const policy = readPolicy(path, contents);
    if (path === own && isOf(policy, ownerText(schema))) found.push({ bindings: policy?.bindings ?? [] });
    if (!path.startsWith(ofFamilies)) continue;
    const family = path.slice(ofFamilies.length);
    const known = Object.hasOwn(families, family) ? families[family] : undefined;
    if (known !== undefined && isOf(policy, ownerText(schema, known)))
      found.push({ family, bindings: policy?.bindings ?? [] });
  }
  return found;
}

/** Those of `later`, and what `earlier` has of other families: a backup has families that were deleted meanwhile. */
export function mergePolicies(earlier: readonly SourcePolicy[], later: readonly SourcePolicy[]): SourcePolicy[] {
  const isLater = ({ family }: SourcePolicy): boolean => later.some((other) => other.family === family);
  return [...later, ...earlier.filter((policy) => !isLater(policy))];
}

/** Undefined: it cannot be read. */
function readPolicy(path: string, contents: Uint8Array): PolicyFile | undefined {
  try {
    return decodePolicy(path, contents);
  } catch {
    return undefined;
  }
}

function isOf(policy: PolicyFile | undefined, owner: string): boolean {
  return policy === undefined || policy.owner === owner;
}
