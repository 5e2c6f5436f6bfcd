/** A change of a schema has returned: no server acknowledges anything under the schema before it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Cluster, inCluster } from '../../test/cluster.ts';
import { rejectsWith, setCell, TABLES, type Tables } from '../../test/tables.ts';
import { Code, unavailable } from '../base/index.ts';
import { listFiles, sleep } from '../env/index.ts';
import { deletionPath, schemaPath } from '../metadata/index.ts';
import { callServer, decodePeerFile, type FamilyChange, SERVERS_DIRECTORY } from '../protocol/index.ts';
import { Master } from './index.ts';

const T = `${TABLES}t`;
const DROP: readonly FamilyChange[] = [{ kind: 'drop', name: 'f' }];
const CREATE: readonly FamilyChange[] = [{ kind: 'create', family: { name: 'f' } }];

const change = ({ client }: Cluster, tables: Tables, changes: readonly FamilyChange[]) =>
  client.modifyFamilies(tables.context(), T, changes);

/** Calls of the server with that index get no answer. */
function cutOff(cluster: Cluster, index: number, method?: string): void {
  cluster.onCall = (call) =>
    call.address === `server-${index}` && (method === undefined || call.method === method)
      ? cluster.noAnswer(call.context)
      : undefined;
}

describe('a change of a schema', () => {
  test(
    'is confirmed by a server that misses the first notices and whose watch is late',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      await tables.set('t', 'a', 'of the first family');
      cluster.hidesChangesOf = schemaPath('');
      let missed = 0;
      cluster.onCall = ({ method }) =>
        method === 'schemaChanged' && missed++ % 3 < 2 ? Promise.reject(unavailable('cut off')) : undefined;
      await change(cluster, tables, DROP);
      await change(cluster, tables, CREATE);
      await tables.set('t', 'b', 'of the second');
      assert.equal(missed, 6);
      assert.deepEqual(await tables.read('t'), [['b', 'of the second']]);
    }),
  );

  test(
    'is UNAVAILABLE while a server that holds its lock does not confirm it, and its repetition changes nothing more',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t', { splits: ['m'] });
        const before = await cluster.client.getTable(tables.context(), T);
        cutOff(cluster, 1, 'schemaChanged');
        const beginMs = cluster.clock.monotonicMs();
        await rejectsWith(Code.UNAVAILABLE, change(cluster, tables, DROP), /tables\/t was changed, but tablet server/);
        assert.ok(cluster.clock.monotonicMs() - beginMs <= 25_000);
        await rejectsWith(Code.UNAVAILABLE, change(cluster, tables, DROP), /server-1 has not confirmed it/);
        cluster.onCall = undefined;
        await change(cluster, tables, DROP);
        await rejectsWith(Code.NOT_FOUND, change(cluster, tables, DROP), /no column family "f"/);
        await change(cluster, tables, CREATE);
        const { families } = await cluster.client.getTable(tables.context(), T);
        assert.equal(families.f?.generation, (before.families.f?.generation ?? 0) + 1);
      },
      { servers: 2 },
    ),
  );

  test(
    'is confirmed by a server whose file was removed: it may hold its lock yet',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t', { splits: ['m'] });
        const notified: string[] = [];
        cluster.onCall = ({ method, address }) => {
          if (method === 'schemaChanged') notified.push(address);
          return undefined;
        };
        cluster.hidesChangesOf = SERVERS_DIRECTORY;
        const files = await listFiles(cluster.env.lockService, SERVERS_DIRECTORY);
        const file = files.find(({ path, contents }) => decodePeerFile(path, contents).address === 'server-1');
        await cluster.env.lockService.remove(file!.path);
        await change(cluster, tables, DROP);
        assert.deepEqual(notified.sort(), ['server-0', 'server-1']);
      },
      { servers: 2 },
    ),
  );

  test(
    'is confirmed by a server whose file was removed before the master began: a row names it',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t', { splits: ['m'] });
        cluster.hidesChangesOf = SERVERS_DIRECTORY;
        const files = await listFiles(cluster.env.lockService, SERVERS_DIRECTORY);
        const file = files.find(({ path, contents }) => decodePeerFile(path, contents).address === 'server-1');
        await cluster.master?.close();
        await cluster.env.lockService.remove(file!.path);
        await cluster.startMaster();
        await cluster.master?.assigned;
        const notified: string[] = [];
        cluster.onCall = ({ method, address }) => {
          if (method === 'schemaChanged') notified.push(address);
          return undefined;
        };
        await change(cluster, tables, DROP);
        assert.deepEqual(notified.sort(), ['server-0', 'server-1']);
      },
      { servers: 2 },
    ),
  );

  test(
    'waits for a server whose file was removed before the master began, and that no row names: it holds its lock',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t', { splits: ['m'] });
        await cluster.startServer();
        const idle = cluster.servers[1]!;
        assert.equal(idle.tablets.size, 0);
        cluster.hidesChangesOf = SERVERS_DIRECTORY;
        await cluster.master?.close();
        await cluster.env.lockService.remove(SERVERS_DIRECTORY + idle.name);
        await cluster.startMaster();
        // it knows the new master
        cluster.client.close();
        await cluster.openClient();
        await rejectsWith(
          Code.UNAVAILABLE,
          change(cluster, tables, DROP),
          /at an unknown address has not confirmed it/,
        );
        await cluster.kill(1);
        await change(cluster, tables, DROP);
      },
      { servers: 1 },
    ),
  );

  test(
    'that a later master refuses as made already is confirmed first',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      cluster.hidesChangesOf = schemaPath('');
      cutOff(cluster, 0, 'schemaChanged');
      await rejectsWith(Code.UNAVAILABLE, change(cluster, tables, DROP), /has not confirmed/);
      await cluster.master?.close();
      cluster.master = await Master.start({ env: cluster.env, address: 'master' });
      await rejectsWith(Code.UNAVAILABLE, change(cluster, tables, DROP), /has not confirmed/);
      cluster.onCall = undefined;
      await rejectsWith(Code.NOT_FOUND, change(cluster, tables, DROP), /no column family "f"/);
      await rejectsWith(Code.NOT_FOUND, tables.set('t', 'a', '1'), /f/);
    }),
  );

  describe('that is not confirmed, and stands', () => {
    /** The family was dropped and created again; the server knows neither. */
    async function replaced(cluster: Cluster, tables: Tables): Promise<void> {
      await tables.create('t');
      await tables.set('t', 'a', 'of the first family');
      cluster.hidesChangesOf = schemaPath('');
      cutOff(cluster, 0, 'schemaChanged');
      for (const changes of [DROP, CREATE])
        await rejectsWith(Code.UNAVAILABLE, change(cluster, tables, changes), /has not confirmed/);
      cluster.onCall = undefined;
    }
    const setB = { row: 'b', mutations: [setCell('of the second')] };
    const calls: Record<string, (cluster: Cluster, tables: Tables) => Promise<unknown>> = {
      read: async (_cluster, tables) => assert.deepEqual(await tables.read('t'), []),
      mutateRow: ({ client }, tables) => client.mutateRow(tables.context(), T, setB),
      mutateRows: ({ client }, tables) => client.mutateRows(tables.context(), T, [setB]),
      checkAndMutateRow: ({ client }, tables) =>
        client.checkAndMutateRow(tables.context(), { table: T, row: 'b', whenTrue: [], whenFalse: setB.mutations }),
      readModifyWriteRow: ({ client }, tables) =>
        client.readModifyWriteRow(tables.context(), T, 'b', [
          { family: 'f', qualifier: 'q', change: { kind: 'append', suffix: Buffer.from('of the second') } },
        ]),
    };
    for (const [name, call] of Object.entries(calls))
      test(
        `comes to a server with the first call of a client that knows it (${name})`,
        inCluster(async (cluster, tables) => {
          await replaced(cluster, tables);
          await call(cluster, tables);
          if (name === 'read') await tables.set('t', 'b', 'of the second');
          assert.deepEqual(await tables.read('t'), [['b', 'of the second']]);
          await cluster.kill(0);
          await cluster.startServer();
          assert.deepEqual(await tables.read('t'), [['b', 'of the second']]);
        }),
      );

    test(
      'has such calls refused while it cannot be read, so that they are repeated',
      inCluster(async (cluster, tables) => {
        await replaced(cluster, tables);
        let reads = 0;
        cluster.onLockCall = (name, path) =>
          name === 'read' && path === schemaPath(T) && reads++ === 0 ? Promise.reject(unavailable('away')) : undefined;
        await tables.set('t', 'b', 'of the second');
        assert.ok(reads > 1);
        assert.deepEqual(await tables.read('t'), [['b', 'of the second']]);
      }),
    );

    test(
      'is read once where a client names a version that there never was',
      inCluster(async (cluster, tables) => {
        await tables.create('t');
        const { id } = await cluster.client.getTable(tables.context(), T);
        let reads = 0;
        cluster.onLockCall = (name, path) => {
          if (name === 'read' && path === schemaPath(T)) reads++;
          return undefined;
        };
        const message = { tableId: id, ...setB, schemaVersion: 2 ** 50 };
        await callServer(cluster.env.transport, 'server-0', 'mutateRow', message, tables.context());
        assert.equal(reads, 1);
        assert.deepEqual(await tables.read('t'), [['b', 'of the second']]);
      }),
    );
  });

  test(
    'does not wait for a server that dies meanwhile',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t', { splits: ['m'] });
        cutOff(cluster, 1);
        const changing = change(cluster, tables, DROP);
        await sleep(cluster.clock, 3000);
        await cluster.kill(1);
        const killedMs = cluster.clock.monotonicMs();
        await changing;
        assert.ok(cluster.clock.monotonicMs() - killedMs <= 5000);
        cluster.onCall = undefined;
      },
      { servers: 2 },
    ),
  );

  test(
    'reaches a server that comes after it with the tablets that it is given',
    inCluster(async (cluster, tables) => {
      await tables.create('t', { splits: ['c', 'f', 'j'] });
      await change(cluster, tables, DROP);
      // it reads the schemas, and its announcement comes after the change
      cluster.hidesChangesOf = schemaPath('');
      let created = false;
      cluster.onLockCall = (name, path, go) => {
        if (name !== 'write' || created || !String(path).startsWith('servers/')) return undefined;
        created = true;
        return change(cluster, tables, CREATE).then(go);
      };
      await cluster.startServer();
      await sleep(cluster.clock, 60_000);
      assert.ok(created);
      for (const row of ['a', 'd', 'g', 'k']) await tables.set('t', row, row);
      assert.deepEqual(await tables.rows('t'), ['a', 'd', 'g', 'k']);
    }),
  );

  test(
    'that deletes a table may be repeated, and its rows are removed by a later master',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      const remove = () => cluster.client.deleteTable(tables.context(), T);
      cluster.onCall = ({ method, context }) =>
        method === 'schemaChanged' || method === 'unload' ? cluster.noAnswer(context) : undefined;
      await rejectsWith(Code.UNAVAILABLE, remove(), /has not confirmed/);
      await rejectsWith(Code.UNAVAILABLE, remove(), /has not confirmed/);
      await cluster.master?.close();
      cluster.onCall = undefined;
      await cluster.startMaster();
      await sleep(cluster.clock, 10_000);
      assert.deepEqual(await listFiles(cluster.env.lockService, deletionPath()), []);
      await rejectsWith(Code.NOT_FOUND, remove(), /does not exist/);
    }),
  );
});
