/**
 * The behaviour suite against a database with two tablet servers, each in a thread: through the wire, where whichever
 * thread takes the connection passes on what is not its own, and by the client library of the main thread, for which
 * every call is passed on. All threads of a process share one listener, so the subjects run one after another.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, overService } from '../../src/embedded/index.ts';
import { startThreadedServer } from '../../src/server/index.ts';
import { behaviourSuite, type Subject } from './suite.ts';

async function started(through: 'wire' | 'ports'): Promise<Subject> {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-threads-'));
  const server = await startThreadedServer({ address: '127.0.0.1:0', database: { directory, tabletServers: 2 } });
  const { service, env } = server.database;
  const database =
    through === 'wire'
      ? await connect(server.address, { project: 'p', instance: 'i' })
      : overService(service, env, async () => {});
  return {
    database,
    close: async () => {
      await database.close();
      await server.close();
      await rm(directory, { recursive: true });
    },
  };
}

behaviourSuite({ name: 'a server of two threads', lacks: ['drop of any row range'], start: () => started('wire') });

behaviourSuite({ name: 'two tablet servers across ports', start: () => started('ports') });
