/**
 * access: rights. A guard that implements the service stands between each front door and its database: it refuses or
 * narrows what policies do not allow, and logs changes and refusals.
 */
export { type GuardedService, type GuardOptions, guardOf } from './guarded-service.ts';
export type { UnreadableFamilies } from './row-guard.ts';
