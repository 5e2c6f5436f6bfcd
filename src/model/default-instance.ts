/** Where tables live that are named by their id alone: no user has to choose a project and an instance to begin. */
export const DEFAULT_PROJECT = 'local';
export const DEFAULT_INSTANCE = 'local';
export const DEFAULT_PARENT = `projects/${DEFAULT_PROJECT}/instances/${DEFAULT_INSTANCE}`;
