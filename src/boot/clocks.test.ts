/** Machines whose wall clocks differ: the processes of a cluster, each with a clock of its own. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Cluster, SETTINGS } from '../../test/cluster.ts';
import { until } from '../../test/raw-server.ts';
import { type BigtableError, Code } from '../base/index.ts';
import type { Env } from '../env/index.ts';
import { Master } from '../master/index.ts';
import { TabletServer } from '../tabletserver/index.ts';

/** The environment of a machine whose wall clock is that much ahead. */
function machine({ env, clock }: Cluster, wall: { aheadMs: number }): Env {
  return {
    ...env,
    clock: {
      nowMicros: () => clock.nowMicros() + wall.aheadMs * 1000,
      monotonicMs: () => clock.monotonicMs(),
      timer: (delayMs, wake) => clock.timer(delayMs, wake),
      yield: () => clock.yield(),
      slices: clock.slices,
    },
  };
}

const startServer = (env: Env, name: string, onEnd: (reason: BigtableError) => void = () => {}) =>
  TabletServer.start({ env, address: name, settings: SETTINGS, comparesClocks: true, onEnd });

const inCluster = (work: (cluster: Cluster) => Promise<void>) => async (): Promise<void> => {
  const cluster = new Cluster();
  await cluster.inTime(async () => {
    await work(cluster);
    await cluster.close();
  });
};

/** What the lock service holds, and the addresses that are served. */
const serversOf = async ({ env }: Cluster): Promise<number> => (await env.lockService.list('servers/')).length;

describe('a tablet server whose clock is off that of the master', () => {
  test(
    'by more than a second does not start, says so, and leaves nothing behind',
    inCluster(async (cluster) => {
      await cluster.start();
      for (const aheadMs of [1500, -1500, 30_000, -30_000]) {
        const words = aheadMs > 0 ? /s ahead of that of the master/ : /s behind that of the master/;
        await assert.rejects(startServer(machine(cluster, { aheadMs }), 's'), {
          code: Code.FAILED_PRECONDITION,
          message: words,
        });
      }
      assert.equal(await serversOf(cluster), 1);
      for (const aheadMs of [900, -900]) {
        const server = await startServer(machine(cluster, { aheadMs }), `s${aheadMs}`);
        await server.close();
      }
    }),
  );

  test(
    'starts while there is no master, and ends when one comes',
    inCluster(async (cluster) => {
      const reasons: string[] = [];
      const wall = { aheadMs: -2500 };
      await startServer(machine(cluster, wall), 'behind', ({ message }) => reasons.push(message));
      const right = await startServer(machine(cluster, { aheadMs: 300 }), 'right', ({ message }) =>
        reasons.push(message),
      );
      await cluster.startMaster();
      await cluster.openClient();
      await until(() => reasons.length > 0);
      assert.match(reasons.join(), /^the wall clock is 2\.5 s behind that of the master/);
      await cluster.tables.create('t');
      await assert.rejects(startServer(machine(cluster, wall), 'behind'), { code: Code.FAILED_PRECONDITION });
      assert.equal(await serversOf(cluster), 1);
      await cluster.master?.close();
      cluster.master = undefined;
      for (const kind of ['users', 'metadata', 'root'] as const) await right.releaseTablets(kind);
      await right.close();
    }),
  );

  test(
    'goes on if its clock is set later, also after a change of masters',
    inCluster(async (cluster) => {
      const wall = { aheadMs: 0 };
      let reason: BigtableError | undefined;
      const server = await startServer(machine(cluster, wall), 's', (thrown) => (reason = thrown));
      await cluster.startMaster();
      wall.aheadMs = 60_000;
      await cluster.master?.close();
      await cluster.startMaster();
      await cluster.openClient();
      await cluster.tables.create('t');
      assert.equal(reason, undefined);
      await cluster.master?.close();
      cluster.master = undefined;
      for (const kind of ['users', 'metadata', 'root'] as const) await server.releaseTablets(kind);
      await server.close();
    }),
  );

  test(
    'is not compared unless it is asked to: roles of one machine have one clock',
    inCluster(async (cluster) => {
      await cluster.start();
      let calls = 0;
      cluster.onCall = ({ method }) => {
        if (method === 'clock') calls++;
        return undefined;
      };
      const env = machine(cluster, { aheadMs: 5000 });
      const server = await TabletServer.start({ env, address: 's', settings: SETTINGS });
      await server.close();
      assert.equal(calls, 0);
    }),
  );
});

test(
  'a master does not stand by while its clock is more than a second off that of the master',
  inCluster(async (cluster) => {
    await cluster.start();
    const standBy = (aheadMs: number, signal: AbortSignal) =>
      Master.start({ env: machine(cluster, { aheadMs }), address: 'second', comparesClocks: true, signal });
    await assert.rejects(standBy(-1800, new AbortController().signal), {
      code: Code.FAILED_PRECONDITION,
      message: /the wall clock is 1\.8 s behind that of the master/,
    });
    const abort = new AbortController();
    const second = standBy(800, abort.signal);
    await cluster.env.clock.yield();
    abort.abort();
    await assert.rejects(second, { code: Code.CANCELLED });
  }),
);
