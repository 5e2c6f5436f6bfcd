/** What a cluster test is given to run: programs that were built before, and folders. */
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { userEnvironment } from '../cli/user-environment.ts';
import type { Machine } from './network.ts';
import { Program } from './program.ts';

export interface Tools {
  /** The path of etcd's program. */
  readonly etcd: string;
  /** The path of versitygw's program; empty where it is not needed. */
  readonly versitygw: string;
  /** Node and its arguments that run the command `edubba`. */
  readonly edubba: readonly string[];
  /** A folder that is removed after the test. */
  readonly scratch: string;
  readonly logs: string;
}

export interface NodeProgramOptions {
  readonly machine: Machine;
  /** A module of this folder. */
  readonly module: string;
  readonly args: readonly string[];
  /** The name of its log. */
  readonly name: string;
}

/** A small program of this folder, in a process of its own. */
export function nodeProgram(tools: Tools, { machine, module, args, name }: NodeProgramOptions): Program {
  const path = fileURLToPath(new URL(`./${module}${extname(fileURLToPath(import.meta.url))}`, import.meta.url));
  return new Program({
    machine,
    command: [process.execPath, path, ...args],
    env: userEnvironment(),
    ready: /^listening/,
    logFile: join(tools.logs, `${name}.log`),
    takesMessages: true,
  });
}
