/**
 * npm start: builds if need be, then runs `edubba serve` on ./edubba-data and 127.0.0.1:8086 in this same process, by the entry that users run,
 * bin/edubba: its settings of V8 count here too. Further arguments are passed on and win over these: npm start -- --address 127.0.0.1:9000
 */
import { buildOrExit } from './lib/build.mjs';

buildOrExit({ onlyBundle: true });
process.argv.splice(2, 0, 'serve', '--dir', './edubba-data', '--address', '127.0.0.1:8086');
await import('../bin/edubba');
