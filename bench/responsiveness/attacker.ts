/** The process of one attack: its name, the server's address, and for how many seconds at most. */
import { ATTACKS } from './attacks.ts';

const [name = '', address = '', seconds = '30'] = process.argv.slice(2);
const attack = ATTACKS[name];
if (!attack) throw new Error(`no attack "${name}"`);
setTimeout(() => process.exit(0), Number(seconds) * 1000);
process.on('disconnect', () => process.exit(0));
process.send?.('begins');
await attack.run(address);
