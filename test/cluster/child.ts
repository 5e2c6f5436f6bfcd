/**
 * A test of a cluster as a process of its own: PROGRAM OPTIONS, which is a line of JSON. Prints what happens, and in
 * the end a line of JSON with what was found. It ends when its input does, and everything that it has started ends with
 * it.
 */
import { Network } from './network.ts';

/** The options of a test that are not in the line of JSON. */
interface Made {
  readonly network: Network;
  readonly say: (line: string) => void;
}

export type Passed<Options extends Made> = Omit<Options, keyof Made>;

/** Runs the test with the options of the command line, and ends the process. `body` returns what was found. */
export async function runAsChild<P extends object>(body: (options: P & Made) => Promise<object>): Promise<void> {
  const options = JSON.parse(process.argv[2]!) as P & { readonly hasNamespaces: boolean };
  process.stdin.on('end', () => process.exit(130)).resume();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130));

  const network = new Network(options.hasNamespaces);
  process.on('exit', () => network.close());
  const startMs = performance.now();
  const say = (line: string): void => {
    const atSeconds = ((performance.now() - startMs) / 1000).toFixed(1).padStart(6);
    process.stdout.write(`${atSeconds}  ${line}\n`);
  };
  const result = await body({ ...options, network, say });
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit());
}
