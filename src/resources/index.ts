/**
 * resources: what the API names beside tables and their rows: instances with their clusters and app profiles, views,
 * schema bundles, policies. Each is a file of the lock service. Caches of what calls need of them follow these files.
 */
export { AppProfileCache } from './app-profile-cache.ts';
export { firstClusterOf, Instances } from './instances.ts';
export { MemoryLayerCache } from './memory-layer-cache.ts';
export { MemoryLayers } from './memory-layers.ts';
export { forgetFiles, keepFiles, returnFiles } from './kept-files.ts';
export { Policies } from './policies.ts';
export { ownerText, PolicyCache } from './policy-cache.ts';
export { Resources } from './resources.ts';
export { mergePolicies, policiesOfTable } from './table-policies.ts';
export { ViewCache } from './view-cache.ts';
