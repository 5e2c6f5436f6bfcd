import {
  ByteBudget,
  type Env,
  LocalTransport,
  type LockHandle,
  ManualClock,
  MemoryFileSystem,
  MemoryLockService,
  Metrics,
  SeededRandom,
  silentLogger,
} from '../../src/env/index.ts';
import { chooseMoves, type TabletLoad } from '../../src/master/balance.ts';
import { Creations } from '../../src/master/creations.ts';
import { Deletions } from '../../src/master/deletions.ts';
import { changeFamilies } from '../../src/master/family-changes.ts';
import { ReleasedTablets } from '../../src/master/released-tablets.ts';
import { Servers } from '../../src/master/servers.ts';
import type { TableSchema } from '../../src/model/index.ts';
import type { Fault } from './fault.ts';

const SCHEMA: TableSchema = {
  name: 'projects/p/instances/i/tables/t',
  id: '00000010',
  granularity: 'millis',
  deletionProtection: false,
  families: { f: { name: 'f', generation: 1 } },
};
const TABLETS: readonly TabletLoad[] = ['a', 'b'].map((key) => ({ key, epoch: 1, sizeBytes: 1, requestRate: 1 }));

async function masterOf(): Promise<{ env: Env; lock: LockHandle }> {
  const clock = new ManualClock();
  const lockService = new MemoryLockService();
  const parts = {
    fileSystem: new MemoryFileSystem(),
    lockService,
    transport: new LocalTransport(clock),
    clock,
    random: new SeededRandom(1),
    requestBudget: new ByteBudget(1 << 20),
    logger: silentLogger,
    metrics: new Metrics(),
  };
  const lock = await lockService.tryAcquire('master', await lockService.openSession());
  if (lock === undefined) throw new Error('the lock is taken');
  return { env: parts as unknown as Env, lock };
}

/** With a server that was found dead. */
async function serversWithDead(name: string): Promise<Servers> {
  const { env, lock } = await masterOf();
  const servers = new Servers(env, lock, () => {});
  await servers.isDead(name);
  return servers;
}

export const MASTER_FAULTS: readonly Fault[] = [
  {
    fault: 'the deletion of a table ends twice',
    message: /a deletion ends once, after it has begun/,
    run: async (planted) => {
      const { env, lock } = await masterOf();
      const deletions = new Deletions(env, lock);
      await deletions.begin('00000010', SCHEMA.name);
      await deletions.end('00000010');
      if (planted) await deletions.end('00000010');
    },
  },
  {
    fault: 'two tables are created with one id',
    message: /a table id is given once/,
    run: (planted) => {
      const creations = new Creations();
      creations.begin('00000010');
      creations.begin(planted ? '00000010' : '00000011');
    },
  },
  {
    fault: 'the schema of a table may yet be written that is not being created',
    message: /written while the table is created/,
    run: (planted) => {
      const creations = new Creations();
      creations.begin('00000010');
      if (planted) creations.end('00000010');
      creations.outcomeUnknown('00000010');
    },
  },
  {
    fault: 'a walk over all rows ends that has not begun',
    message: /a walk over all rows ends when it has begun/,
    run: (planted) => {
      const released = new ReleasedTablets();
      if (!planted) released.begin();
      released.end();
    },
  },
  {
    fault: 'a dead server is given a tablet',
    message: /a dead server is given no tablet/,
    run: async (planted) => (await serversWithDead('s')).giving([planted ? 's' : 't']),
  },
  {
    fault: 'the end of a commit is counted twice',
    message: /the end of a commit is reported once/,
    run: async (planted) => {
      const ended = (await serversWithDead('s')).giving(['t']);
      ended();
      if (planted) ended();
    },
  },
  {
    fault: 'the log of a server is deleted that was not found dead',
    message: /dead servers/,
    run: async (planted) => (await serversWithDead('s')).logDeleted(planted ? 't' : 's'),
  },
  {
    fault: 'the log of a server is deleted that a commit under way gives tablets',
    message: /commit under way/,
    run: async (planted) => {
      const servers = await serversWithDead('none');
      const ended = servers.giving(['s']);
      await servers.isDead('s');
      if (!planted) ended();
      servers.logDeleted('s');
    },
  },
  {
    fault: 'one server stands twice in the list of all',
    message: /moved to another server/,
    run: (planted) =>
      chooseMoves([
        { name: 's', tablets: TABLETS },
        { name: planted ? 's' : 't', tablets: [] },
      ]),
  },
  {
    fault: 'a family gets a generation that another had',
    message: /generation/,
    run: (planted) =>
      changeFamilies({ ...SCHEMA, nextGenerations: { f: planted ? 2 : 1 } }, [{ kind: 'drop', name: 'f' }]),
  },
];
