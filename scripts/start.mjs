/**
 * npm start: builds if need be, then serves ./edubba-data on 127.0.0.1:8086 in this same process. Further arguments are
 * passed on and win over these: npm start -- --address 127.0.0.1:9000
 */
import { buildOrExit } from './lib/build.mjs';

buildOrExit();
const { main } = await import('../dist/bundle/edubba.js');
process.exitCode = await main(['serve', '--dir', './edubba-data', '--address', '127.0.0.1:8086', ...process.argv.slice(2)]);
