/**
 * The behaviour suite against a server, through the Cloud API over the wire. With EDUBBA_BEHAVIOUR_ADDRESS it runs
 * against that server in place of its own (`npm run interop` gives Google's Go emulator, with EDUBBA_BEHAVIOUR_LACKS
 * naming what it lacks).
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '../../src/boot/index.ts';
import { connect } from '../../src/embedded/index.ts';
import { startServer } from '../../src/server/index.ts';
import { behaviourSuite, type Feature, type Subject } from './suite.ts';

async function connected(address: string, after: () => Promise<void>): Promise<Subject> {
  const database = await connect(address);
  return {
    database,
    close: async () => {
      await database.close();
      await after();
    },
  };
}

async function ownServer(): Promise<Subject> {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-behaviour-'));
  const { service, env, close } = await openDatabase({ directory });
  const server = await startServer({ service, env, address: '127.0.0.1:0' });
  return connected(server.address, async () => {
    await server.close();
    await close();
    await rm(directory, { recursive: true });
  });
}

const other = process.env['EDUBBA_BEHAVIOUR_ADDRESS'];
behaviourSuite({
  name: other === undefined ? 'a server' : `the server at ${other}`,
  // the API drops rows by prefix or all
  lacks: ['drop of any row range', ...((process.env['EDUBBA_BEHAVIOUR_LACKS']?.split(',') ?? []) as Feature[])],
  start: () => (other === undefined ? ownServer() : connected(other, async () => {})),
});
