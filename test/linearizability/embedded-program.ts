/**
 * A program with the embedded library: node embedded-program.js DIRECTORY. It makes the calls that its parent sends
 * until SIGTERM.
 */
import { open } from '../../src/embedded/index.ts';
import { type Call, perform } from './calls.ts';
import type { Message } from './database-process.ts';

const database = await open(process.argv[2]!);
const send = (message: Message): void => void process.send!(message);
process.on('message', ({ id, call }: { id: number; call: Call }) => {
  void perform(database, call).then((outcomes) => send({ id, outcomes }));
});
process.once('SIGTERM', () => void database.close().then(() => process.disconnect()));
send('open');
