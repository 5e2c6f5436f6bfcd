/**
 * The program of a tablet server's thread that dies of an uncaught error when the lock service's file `mortal/<index>`
 * is written.
 */
import { workerData } from 'node:worker_threads';
import { runServerThread } from '../../src/boot/index.ts';

const { index } = workerData as { readonly index: number };

await runServerThread(async ({ env }) => {
  const stop = env.lockService.watch(`mortal/${index}`, ({ kind }) => {
    if (kind !== 'changed') return;
    setImmediate(() => {
      throw new Error('killed by the test');
    });
  });
  return { close: async () => stop() };
});
