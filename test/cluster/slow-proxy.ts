/**
 * A port in front of another one that passes bytes on late: slow-proxy.js HOST:PORT TARGET_HOST:PORT. A message
 * { delayMs } sets the delay of each direction.
 */
import { connect, createServer, type Socket } from 'node:net';

interface Message {
  readonly delayMs: number;
}

const [own, target] = process.argv.slice(2).map((address) => {
  const [host, port] = address.split(':') as [string, string];
  return { host, port: Number(port) };
}) as [{ host: string; port: number }, { host: string; port: number }];
let delayMs = 0;
process.on('message', (message: Message) => (delayMs = message.delayMs));
process.on('disconnect', () => process.exit());

createServer({ noDelay: true }, (client) => {
  const server = connect({ ...target, noDelay: true });
  passOn(client, server);
  passOn(server, client);
}).listen({ host: own.host, port: own.port }, () => console.log('listening'));

function passOn(from: Socket, to: Socket): void {
  // chunks stay in order when the delay becomes shorter
  let earlier = Promise.resolve();
  from.on('data', (chunk) => {
    const due = delayMs === 0 ? Promise.resolve() : new Promise<void>((resolve) => setTimeout(resolve, delayMs));
    earlier = earlier.then(() => due).then(() => void to.write(chunk));
  });
  from.on('error', () => {});
  from.on('close', () => to.destroy());
}
