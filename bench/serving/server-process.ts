/** The built command line as a server in a process of its own. It never outlives this one. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

// beside the compiled benches: dist/bench/serving
const EXECUTABLE = fileURLToPath(new URL('../../../bin/edubba', import.meta.url));

export interface ServerProcess {
  readonly child: ChildProcess;
  /** host:port */
  readonly address: string;
  /** Resolves when it has ended, which it may have before. Default: SIGTERM. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Serves the directory on a free port, with these words behind and these of Node's options before; `ipc`: with a channel for messages. */
export async function startServer(directory: string, { words = [], nodeOptions = [], ipc = false }: { words?: readonly string[]; nodeOptions?: readonly string[]; ipc?: boolean } = {}): Promise<ServerProcess> {
  const all = [...nodeOptions, EXECUTABLE, 'serve', '--dir', directory, '--address', '127.0.0.1:0', ...words];
  const child = spawn(process.execPath, all, { stdio: ['ignore', 'pipe', 'inherit', ...(ipc ? (['ipc'] as const) : [])] });
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
