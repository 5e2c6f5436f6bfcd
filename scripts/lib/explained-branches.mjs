/**
 * Branches that no simulated cluster can take, by function, with the reason
 * (docs/decisions/0077-branches-that-no-cluster-takes.md). scripts/coverage.mjs checks that each function exists, and
 * that a run took none of its branches: what can be taken is not listed.
 */

const BUFFERED =
  'only with `durability: buffered`, where a crash may lose acknowledged writes: the judges of the simulator hold a cluster to the opposite';

/** @type {readonly { file: string, functions: readonly string[], reason: string }[]} */
export const EXPLAINED = [
  {
    file: 'src/commitlog/server-log.ts',
    functions: ['appendReserved', '#whenReserved', '#reserve'],
    reason: BUFFERED,
  },
];
