/**
 * Loaded before the command, in all its threads: a bug for the tests of bugs. On SIGUSR2 an error comes up that nobody catches, as the variable
 * EDUBBA_TEST_STRAY says: a rejection or an exception, in the main thread or in all others.
 */
import { BroadcastChannel, isMainThread } from 'node:worker_threads';

const [where, what] = (process.env['EDUBBA_TEST_STRAY'] ?? '').split(' ');
const channel = new BroadcastChannel('edubba-test-stray');

function strayBug(): void {
  const error = new Error(`a stray ${what}`);
  if (what === 'rejection') void Promise.reject(error);
  else setImmediate(() => { throw error; });
}

if (isMainThread) process.on('SIGUSR2', () => (where === 'main' ? strayBug() : channel.postMessage('now')));
else channel.onmessage = strayBug;
channel.unref();
