/** Calls to every tablet server of the database. */
import { type Env, listFiles, type RequestContext, within } from '../env/index.ts';
import { decodeCallablePeer, type PeerFile, SERVERS_DIRECTORY } from '../protocol/index.ts';
import { isMisdirected } from './router.ts';

/** Calls every tablet server, except those that have ended. Fails after all are done, if one failed. */
export async function onServers<T>(
  env: Pick<Env, 'lockService' | 'clock'>,
  call: (server: PeerFile) => Promise<T>,
  context: RequestContext,
): Promise<T[]> {
  const files = await within(listFiles(env.lockService, SERVERS_DIRECTORY), context, env.clock);
  const answers: T[] = [];
  for (const outcome of await Promise.allSettled(
    files.map(async ({ path, contents }) => call(decodeCallablePeer(path, contents))),
  )) {
    if (outcome.status === 'fulfilled') answers.push(outcome.value);
    else if (!isMisdirected(outcome.reason)) throw outcome.reason;
  }
  return answers;
}
