/**
 * Turns on the costly checks of invariants (src/base/invariants.ts) in a process that imports this first. `npm test`
 * does so in all of its processes.
 */
Object.assign(globalThis, { EDUBBA_CHECK_INVARIANTS: true });
