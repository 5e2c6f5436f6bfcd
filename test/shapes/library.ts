/** A program with the library of the bundle: a database in memory, whose compactions run on the main thread. */
import type * as embedded from '../../src/embedded/index.ts';
import type { Message } from './messages.ts';
import { Workloads } from './workloads.ts';

const library = (await import(process.argv[2]!)) as typeof embedded;
const workloads = await Workloads.begin(library, await library.open(':memory:', { memtableBytes: 1 << 20 }));

process.on('message', async (message: Message) => {
  if (message.kind !== 'workload') return;
  await workloads.run(message.name, message.calls);
  process.send?.([]);
});
process.send?.([]);
