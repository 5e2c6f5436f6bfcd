/** What the thread of a tablet server runs: its parts (boot), and the Cloud Bigtable API as their door. */
import { runServerThread } from '../boot/index.ts';
import { startServer } from './server.ts';
import type { DoorOptions } from './server-threads.ts';

await runServerThread((service, env, options) => startServer({ ...(options as DoorOptions), service, env }));
