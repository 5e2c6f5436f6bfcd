/** The environment of a user's shell: without what is set for tests, which a server would take for settings. */
export function userEnvironment(): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('EDUBBA_') && name !== 'BIGTABLE_EMULATOR_HOST'),
  );
}
