/**
 * The switch for invariants that cost more to check than what they guard: on in tests, off elsewhere.
 *
 * Tests set it as a global before any module is loaded (scripts/lib/check-invariants.mjs). It is read once, so it is a
 * constant where it is tested: `if (checksInvariants) assertPartition(...)`. Cheap invariants need no switch: `assert`
 * alone.
 */
declare const EDUBBA_CHECK_INVARIANTS: unknown;

export const checksInvariants: boolean =
  typeof EDUBBA_CHECK_INVARIANTS !== 'undefined' && EDUBBA_CHECK_INVARIANTS === true;
