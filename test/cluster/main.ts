/**
 * A cluster test as a process of its own: main.js OPTIONS, which is a line of JSON. Prints what happens, and in the end
 * a line of JSON with what was found. It ends when its input does, and everything that it has started ends with it.
 */
import { Network } from './network.ts';
import { Run, type RunResult } from './run.ts';
import type { StoreKind } from './store.ts';
import type { Tools } from './tools.ts';

/** What the script passes on. */
interface MainOptions {
  readonly tools: Tools;
  readonly hasNamespaces: boolean;
  readonly store: StoreKind;
  readonly servers: number;
  readonly minutes: number;
  readonly seed: number;
  readonly isShort: boolean;
  readonly only: string;
}

const { hasNamespaces, ...options } = JSON.parse(process.argv[2]!) as MainOptions;
process.stdin.on('end', () => process.exit(130)).resume();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130));

const network = new Network(hasNamespaces);
process.on('exit', () => network.close());
const startMs = performance.now();
const say = (line: string): void => {
  const atSeconds = ((performance.now() - startMs) / 1000).toFixed(1).padStart(6);
  process.stdout.write(`${atSeconds}  ${line}\n`);
};
const run = await Run.start({ ...options, network, say });
const result: RunResult = await run.run();
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit());
