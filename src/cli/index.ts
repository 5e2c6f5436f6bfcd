/** cli: the command `edubba`. */
export { main } from './main.ts';
export { settingsPage } from './settings/settings-page.ts';
export type { Terminal } from './output/terminal.ts';
