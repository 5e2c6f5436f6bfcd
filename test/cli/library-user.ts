/**
 * A program that uses the library and the server as modules, and then has a bug of its own: `library-user DIRECTORY
 * rejection|handled`.
 */
import { open } from '../../src/embedded/index.ts';
import { startThreadedServer } from '../../src/server/index.ts';

const [directory = '', what] = process.argv.slice(2);
const EVENTS = [
  'unhandledRejection',
  'uncaughtException',
  'uncaughtExceptionMonitor',
  'SIGTERM',
  'SIGINT',
  'exit',
  'beforeExit',
  'warning',
] as const;
const handlers = (): number => EVENTS.reduce((sum, event) => sum + process.listenerCount(event), 0);

const before = handlers();
const database = await open(':memory:');
const server = await startThreadedServer({ address: '127.0.0.1:0', database: { directory, tabletServers: 2 } });
console.log(`${handlers() - before} handlers of the library`);
await server.close();
await database.close();

if (what === 'handled') process.once('unhandledRejection', () => {});
void Promise.reject(new Error("the program's own bug"));
