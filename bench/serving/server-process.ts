/** The built command line as a server in a process of its own. It never outlives this one. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

// next to the compiled benches: dist/bench/serving
const EXECUTABLE = fileURLToPath(new URL('../../../bin/edubba', import.meta.url));

export interface ServerProcess {
  readonly child: ChildProcess;
  /** host:port */
  readonly address: string;
  /** Resolves when it has ended, which it may have before. Default: SIGTERM. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export interface ServerProcessOptions {
  /** Arguments after the directory and the address. */
  readonly words?: readonly string[];
  readonly nodeOptions?: readonly string[];
  /** With a channel for messages. */
  readonly ipc?: boolean;
  /** The limit of descriptors. Default: this process's. */
  readonly descriptors?: number | undefined;
}

/** Serves the directory on a free port. */
export async function startServer(directory: string, options: ServerProcessOptions = {}): Promise<ServerProcess> {
  const { words = [], nodeOptions = [], ipc = false, descriptors } = options;
  const all = [
    process.execPath,
    ...nodeOptions,
    EXECUTABLE,
    'serve',
    '--dir',
    directory,
    '--address',
    '127.0.0.1:0',
    ...words,
  ];
  const [command = '', ...rest] =
    descriptors === undefined ? all : ['sh', '-c', `ulimit -n ${descriptors}; exec "$@"`, 'sh', ...all];
  const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'inherit', ...(ipc ? (['ipc'] as const) : [])] });
  const ended = once(child, 'exit');
  const kill = (): void => void child.kill('SIGKILL');
  process.on('exit', kill);
  void ended.then(() => process.off('exit', kill));
  const stop = async (signal?: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await ended;
  };
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const address = /^listening on (\S+)$/.exec(line)?.[1];
    if (address !== undefined) return { child, address, stop };
  }
  throw new Error('the server ended before it listened');
}
