/** A TCP balancer (haproxy) before servers, which can be drained: it gives them no new connections. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { which } from './repository.mjs';
import { freePort, startServer } from './server.mjs';

const READY_MS = 10_000;

/** Why there can be no balancer, or undefined. */
export const balancerMissing = () => (which('haproxy') ? undefined : 'haproxy is not on the search path');

/** @typedef {Awaited<ReturnType<typeof startBalancer>>} Balancer */

/**
 * Starts a balancer before these addresses. It checks each by connecting to it.
 *
 * @param {readonly string[]} addresses
 */
export async function startBalancer(addresses) {
  const folder = mkdtempSync(join(tmpdir(), 'edubba-balancer-'));
  const socket = join(folder, 'control');
  const address = `127.0.0.1:${await freePort()}`;
  const config = join(folder, 'haproxy.cfg');
  const lines = [
    'global',
    `  stats socket ${socket} mode 600 level admin`,
    'defaults',
    '  mode tcp',
    '  timeout connect 2s',
    '  timeout client 5m',
    '  timeout server 5m',
    '  option redispatch',
    'frontend doors',
    `  bind ${address}`,
    '  default_backend servers',
    'backend servers',
    '  balance roundrobin',
    ...addresses.map((one, i) => `  server s${i} ${one} check inter 500ms fall 1 rise 1`),
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  const running = await startServer('haproxy', 'haproxy', ['-V', '-db', '-f', config], /Using (\w+)\(\)/, READY_MS);
  /** @param {string} command */
  const tell = (command) =>
    new Promise((done, refuse) => {
      let answer = '';
      createConnection(socket)
        .setEncoding('utf8')
        .on('data', (text) => (answer += text))
        .on('error', refuse)
        .on('close', () => done(answer.trim()))
        .end(`${command}\n`);
    });
  // it says that it starts before it takes commands
  for (const endMs = performance.now() + READY_MS; ; await pause(20)) {
    const taken = await tell('show info').then(
      () => true,
      () => false,
    );
    if (taken) break;
    if (performance.now() > endMs) throw new Error(`haproxy takes no commands: ${running.output()}`);
  }
  return {
    address,
    /** Gives the server of that number no new connections, or gives it some again. */
    drain: (/** @type {number} */ i) => tell(`set server servers/s${i} state drain`),
    undrain: (/** @type {number} */ i) => tell(`set server servers/s${i} state ready`),
    async end() {
      await running.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
