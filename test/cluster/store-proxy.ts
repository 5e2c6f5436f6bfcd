/**
 * An S3 store in front of another one, whose moods are set: store-proxy.js HOST:PORT TARGET_HOST:PORT. A message
 * { refusedShare, slowestMs } sets the share of the requests that are answered 503, and the longest delay of the
 * others.
 */
import { createServer, request } from 'node:http';

interface Message {
  readonly refusedShare: number;
  readonly slowestMs: number;
}

const [[host, port], [targetHost, targetPort]] = process.argv.slice(2).map((address) => address.split(':')) as [
  [string, string],
  [string, string],
];
let mood: Message = { refusedShare: 0, slowestMs: 0 };
process.on('message', (message: Message) => (mood = message));
process.on('disconnect', () => process.exit());

const REFUSAL = '<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>slow down</Message></Error>';

createServer((incoming, answer) => {
  incoming.on('error', () => {});
  answer.on('error', () => {});
  if (Math.random() < mood.refusedShare) {
    incoming.resume().on('end', () => {
      answer.writeHead(503, { 'content-type': 'application/xml', 'content-length': REFUSAL.length });
      answer.end(REFUSAL);
    });
    return;
  }
  const passOn = (): void => {
    const outgoing = request({
      host: targetHost,
      port: Number(targetPort),
      method: incoming.method,
      path: incoming.url,
      headers: incoming.rawHeaders,
    });
    outgoing.on('response', (response) => {
      answer.writeHead(response.statusCode!, response.rawHeaders);
      response.on('error', () => answer.destroy()).pipe(answer);
    });
    outgoing.on('error', () => answer.destroy());
    answer.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  };
  if (mood.slowestMs === 0) passOn();
  else setTimeout(passOn, Math.random() * mood.slowestMs);
}).listen({ host, port: Number(port) }, () => console.log('listening'));
