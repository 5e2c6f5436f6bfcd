/**
 * The cluster's name: the identity of its store, kept in a file of the lock service.
 *
 * Invariant: a lock service with locks of one store is never used with another one, whose files its METADATA does not
 * name.
 */
import { BigtableError, Code, toBigtableError } from '../../base/index.ts';
import type { LockService } from '../../env/index.ts';

const PATH = 'cluster';

interface Places {
  /** Addresses, for messages. */
  readonly lock: string;
  readonly files: string;
}

/**
 * Notes the store in the lock service where none is noted. FAILED_PRECONDITION if another one is: the store is that of
 * another cluster.
 */
export async function claimStore(lockService: LockService, identity: string, { lock, files }: Places): Promise<void> {
  const found = (await identityOf(lockService)) ?? (await create(lockService, identity));
  if (found === identity) return;
  throw new BigtableError(
    Code.FAILED_PRECONDITION,
    `${lock} and ${files} are of different clusters: the lock service belongs to store ${found}, and this is store ${identity}. Choose another prefix of etcd, or the right store`,
  );
}

/** The identity of the cluster's store; undefined where no process of it has ever started. */
export async function identityOf(lockService: LockService): Promise<string | undefined> {
  const file = await lockService.read(PATH);
  return file && Buffer.from(file.contents).toString('latin1');
}

/** Notes the store, unless another process has just done so. Answers what is noted. */
async function create(lockService: LockService, identity: string): Promise<string | undefined> {
  try {
    await lockService.write(PATH, Buffer.from(identity, 'latin1'), { version: 0 });
    return identity;
  } catch (thrown) {
    if (toBigtableError(thrown).code !== Code.ABORTED) throw thrown;
    return identityOf(lockService);
  }
}
