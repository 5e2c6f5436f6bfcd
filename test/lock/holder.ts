/**
 * A process that takes a directory's lock and holds it, for the tests next to it. It says `held` or `refused: why` in
 * one line, then waits for its end.
 */
import { lockDirectory } from '../../src/platform/index.ts';

try {
  await lockDirectory(process.argv[2] ?? '');
  process.stdout.write('held\n');
} catch (error) {
  process.stdout.write(`refused: ${error instanceof Error ? error.message : error}\n`);
}
// held until the process is ended, or until the test that started it has gone
process.stdin.resume();
process.stdin.on('end', () => process.exit());
