/** Answers which thread it runs in. */
import { threadId } from 'node:worker_threads';

export function run(): number {
  return threadId;
}
