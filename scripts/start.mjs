/**
 * npm start: builds if need be, then runs `edubba serve` (on ./edubba-data and 127.0.0.1:8086 unless it is told
 * otherwise) in this same process, by the entry that users run, bin/edubba: its settings of V8 count here too. Further
 * arguments are passed on: npm start -- --address 127.0.0.1:9000
 */
import { buildOrExit } from './lib/build.mjs';

buildOrExit({ onlyBundle: true });
process.argv.splice(2, 0, 'serve');
await import(new URL('../bin/edubba', import.meta.url).href);
