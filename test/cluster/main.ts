/** A cluster test as a process of its own: main.js OPTIONS. */
import { type Passed, runAsChild } from './child.ts';
import { Run, type RunOptions } from './run.ts';

await runAsChild<Passed<RunOptions>>(async (options) => (await Run.start(options)).run());
