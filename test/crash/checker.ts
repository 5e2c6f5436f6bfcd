/**
 * Looks through what a dead writer left behind, as a process of its own, so that nothing stays open after it: node
 * checker.js DIRECTORY LAST, where LAST is JSON, the iteration that each writer had acknowledged. Prints where each
 * stands now.
 */
import { open } from '../../src/embedded/index.ts';
import { checkLedger } from './ledger.ts';

const database = await open(process.argv[2] as string);
const now = await checkLedger(database, JSON.parse(process.argv[3] as string) as number[]);
await database.close();
process.stdout.write(`${JSON.stringify(now)}\n`);
