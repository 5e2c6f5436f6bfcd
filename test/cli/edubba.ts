/** The command as a process of its own, compiled or not as its test is. */
import { main } from '../../src/cli/index.ts';

process.exitCode = await main(process.argv.slice(2));
