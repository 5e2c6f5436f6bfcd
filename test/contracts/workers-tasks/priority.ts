/** Answers the priority of the thread it runs in. */
import { getPriority } from 'node:os';

export function run(): number {
  return getPriority(0);
}
