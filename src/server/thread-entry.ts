/** The program of a tablet server's thread: its parts (boot), and a server of the Cloud Bigtable API over them. */
import { runServerThread } from '../boot/index.ts';
import { startServer } from './server.ts';
import type { ThreadServerOptions } from './threaded-server.ts';

await runServerThread((parts, options) => startServer({ ...(options as ThreadServerOptions), ...parts }));
