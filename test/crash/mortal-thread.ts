/**
 * The program of a tablet server's thread that dies of an uncaught error when the lock service's file `mortal/<place>`
 * is written.
 */
import { workerData } from 'node:worker_threads';
import { runServerThread } from '../../src/boot/index.ts';

const { place } = workerData as { readonly place: number };

await runServerThread(async (_service, env) => {
  const stop = env.lockService.watch(`mortal/${place}`, () => {
    setImmediate(() => {
      throw new Error('killed by the test');
    });
  });
  return { close: async () => stop() };
});
