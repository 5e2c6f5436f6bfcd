/** cli: the command `edubba`. */
export { main } from './main.ts';
export { settingsPage } from './settings-page.ts';
export type { Terminal } from './terminal.ts';
