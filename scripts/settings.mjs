/**
 * docs/SETTINGS.md from the table of settings, src/cli/settings/server-settings.ts. Without an argument it compares,
 * and ends with status 1 where the page is not what the table says.
 *
 *   node --import tsx scripts/settings.mjs [--write]
 */
import { settingsPage } from '../src/cli/index.ts';
import { keepPage } from './lib/generated-page.mjs';

keepPage({
  page: 'docs/SETTINGS.md',
  text: settingsPage(),
  source: 'src/cli/settings/server-settings.ts',
  script: 'scripts/settings.mjs',
});
