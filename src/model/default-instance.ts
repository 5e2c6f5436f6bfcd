/**
 * The project and instance of tables that are named by their id alone, so that a user need not choose them to begin.
 */
export const DEFAULT_PROJECT = 'local';
export const DEFAULT_INSTANCE = 'local';
export const DEFAULT_PARENT = `projects/${DEFAULT_PROJECT}/instances/${DEFAULT_INSTANCE}`;
