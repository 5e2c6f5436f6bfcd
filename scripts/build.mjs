/**
 * npm run build: installs and compiles what changed. See lib/build.mjs.
 */
import { buildOrExit } from './lib/build.mjs';

buildOrExit();
