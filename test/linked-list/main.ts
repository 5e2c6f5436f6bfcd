/** A linked-list test as a process of its own: main.js OPTIONS. */
import { type Passed, runAsChild } from '../cluster/child.ts';
import { Run, type RunOptions } from './run.ts';

await runAsChild<Passed<RunOptions>>(async (options) => (await Run.start(options)).run());
