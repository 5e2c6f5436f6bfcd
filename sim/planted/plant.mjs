/** node --import plant.mjs: runs a program with a planted bug, EDUBBA_PLANTED_BUG: { root, changes } as JSON. */
import { register } from 'node:module';

register('./hooks.mjs', import.meta.url, { data: JSON.parse(process.env.EDUBBA_PLANTED_BUG) });
