/** What front doors follow, policies above all: a change that has returned is known at every door that answers. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Cluster } from '../../../test/cluster.ts';
import { rejectsWith } from '../../../test/tables.ts';
import { Code } from '../../base/index.ts';
import { listFiles, requestContext, sleep } from '../../env/index.ts';
import { DEFAULT_PARENT, type Policy } from '../../model/index.ts';
import { decodePeerFile, SERVERS_DIRECTORY } from '../../protocol/index.ts';
import { checkSettings } from '../settings/settings.ts';
import { TabletServerRole } from './tablet-server-role.ts';

const policy = (...members: string[]): Policy => ({ bindings: [{ role: 'roles/bigtable.reader', members }] });

/** Two servers with their doors and a master. The doors hear no news of policies by their watches. */
class Doors {
  readonly cluster = new Cluster({ servers: 0 });
  readonly roles: TabletServerRole[] = [];

  static inTime(work: (doors: Doors) => Promise<void>): () => Promise<void> {
    const doors = new Doors();
    return () =>
      doors.cluster.inTime(async () => {
        await doors.#start();
        await work(doors);
        await doors.#close();
      });
  }

  async #start(): Promise<void> {
    const { cluster } = this;
    cluster.hidesChangesOf = 'policies/';
    for (const address of ['door-0', 'door-1']) {
      const role = await TabletServerRole.start({ env: cluster.env, address, settings: checkSettings() });
      this.roles.push(role);
      await role.service.policySource!.start();
    }
    await cluster.startMaster();
  }

  async #close(): Promise<void> {
    await this.cluster.master?.close();
    for (const role of this.roles) {
      role.service.policySource!.stop();
      await role.close();
    }
  }

  context() {
    const { requestBudget: budget, clock } = this.cluster.env;
    return requestContext({ budget, deadlineMs: clock.monotonicMs() + 10_000 });
  }

  set(door: number, wanted: Policy) {
    return this.roles[door]!.service.policies!.setPolicy(this.context(), DEFAULT_PARENT, wanted);
  }

  source(door: number) {
    return this.roles[door]!.service.policySource!;
  }

  membersAt(door: number) {
    return this.source(door)
      .find(DEFAULT_PARENT)
      ?.bindings.flatMap(({ members }) => members);
  }

  /** The session that has the lock of the server at that door. */
  async sessionOf(door: number): Promise<string> {
    const { lockService } = this.cluster.env;
    for (const { path, contents } of await listFiles(lockService, SERVERS_DIRECTORY)) {
      const holder = await lockService.holder(path);
      if (holder !== undefined && decodePeerFile(path, contents).address === `door-${door}`) return holder.sessionId;
    }
    assert.fail(`the server at door ${door} has no lock`);
  }

  async until(isTrue: () => boolean): Promise<void> {
    for (let i = 0; !isTrue(); i++) {
      assert.ok(i < 600, 'it takes a minute');
      await sleep(this.cluster.clock, 100);
    }
  }
}

describe('the front doors of a cluster', () => {
  test(
    'know a policy when its change returns, though their watches are late',
    Doors.inTime(async (doors) => {
      for (const [door, member] of [
        [0, 'token:a'],
        [1, 'token:b'],
      ] as const) {
        await doors.set(door, policy(member));
        assert.deepEqual([doors.membersAt(0), doors.membersAt(1)], [[member], [member]]);
      }
    }),
  );

  test(
    'where one does not answer, the change is UNAVAILABLE, stands, and may be repeated',
    Doors.inTime(async (doors) => {
      const { cluster } = doors;
      await doors.set(0, policy('token:a'));
      cluster.onCall = ({ address, method, context }) =>
        address === 'door-1' && method === 'doorFilesChanged' ? cluster.noAnswer(context) : undefined;
      const revoked = policy('token:b');
      await rejectsWith(
        Code.UNAVAILABLE,
        doors.set(0, revoked),
        /policies\/.* was changed, but tablet server .* door-1/,
      );
      assert.deepEqual([doors.membersAt(0), doors.membersAt(1)], [['token:b'], ['token:a']]);
      cluster.onCall = undefined;
      await doors.set(0, revoked);
      assert.deepEqual(doors.membersAt(1), ['token:b']);
    }),
  );

  test(
    'decide nothing after their server lost its lock, until they have read everything under another',
    Doors.inTime(async (doors) => {
      const { cluster } = doors;
      await doors.set(0, policy('token:a'));
      const { lockService } = cluster.env;
      const session = await doors.sessionOf(1);
      let isHeldUp = true;
      cluster.onLockCall = (name, path, go) =>
        isHeldUp && name === 'list' && String(path).startsWith('policies/')
          ? doors.until(() => !isHeldUp).then(go)
          : undefined;
      await lockService.closeSession(session);
      assert.ok(!doors.source(1).isCurrent);
      await doors.until(() => cluster.messages.length > 0);
      await doors.set(0, policy('token:b'));
      // it has a lock again, and has not read yet
      while ((await doors.sessionOf(1).catch(() => session)) === session) await sleep(cluster.clock, 100);
      assert.deepEqual([doors.source(1).isCurrent, doors.membersAt(1)], [false, ['token:a']]);
      isHeldUp = false;
      await doors.until(() => doors.source(1).isCurrent);
      assert.deepEqual(doors.membersAt(1), ['token:b']);
    }),
  );
});
