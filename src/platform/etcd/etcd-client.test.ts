import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { testEnv, testStatus } from '../../../test/raw-server.ts';
import { BigtableError, Code } from '../../base/index.ts';
import { type RpcCall, WireServer } from '../../wire/index.ts';
import { systemClock } from '../machine/system-clock.ts';
import { EtcdClient, type EtcdAccess } from './etcd-client.ts';
import { AUTHENTICATE, LEASE_REVOKE, RANGE } from './messages.ts';

const env = testEnv();
const KEY = { key: Buffer.from('k') };

interface Member {
  readonly endpoint: string;
  /** Calls of Range so far. */
  readonly calls: RpcCall[];
  close(): Promise<void>;
}

/** A port that answers Range and LeaseRevoke as `answer` decides, by the call's number; its tokens are 't1', 't2' … */
async function member(answer: (call: number, rpc: RpcCall) => Promise<void> | void): Promise<Member> {
  const server = new WireServer({ env, statusOf: testStatus });
  const calls: RpcCall[] = [];
  let tokens = 0;
  const handle = async (call: RpcCall): Promise<Buffer> => {
    calls.push(call);
    await answer(calls.length, call);
    return RANGE.answer.encode({ kvs: [{ key: KEY.key, modRevision: 7 }] });
  };
  for (const { path } of [RANGE, LEASE_REVOKE]) server.register(path, { kind: 'unary', handle });
  server.register(AUTHENTICATE.path, {
    kind: 'unary',
    handle: async () => AUTHENTICATE.answer.encode({ token: `t${++tokens}` }),
  });
  const port = await server.listen('127.0.0.1', 0);
  return { endpoint: `127.0.0.1:${port}`, calls, close: () => server.close(0) };
}

const never = (): Promise<void> => new Promise(() => {});
const fail = (code: Code, message: string) => (): never => {
  throw new BigtableError(code, message);
};

/** Calls go to the first member first. */
async function withMembers(
  answers: readonly Parameters<typeof member>[0][],
  run: (client: EtcdClient, members: readonly Member[]) => Promise<void>,
  access: Partial<EtcdAccess> = {},
): Promise<void> {
  const members = await Promise.all(answers.map(member));
  const endpoints = members.map(({ endpoint }) => endpoint);
  const random = { ...env.random, float: () => 0 };
  const client = new EtcdClient({ endpoints, clock: systemClock, random, ...access });
  try {
    await run(client, members);
  } finally {
    client.close();
    await Promise.all(members.map((one) => one.close()));
  }
}

describe('calls of etcd', () => {
  test('stay with a member that answers', async () => {
    await withMembers([() => {}, () => {}], async (client, [first, second]) => {
      for (let i = 0; i < 5; i++) {
        const { answer, isRepeated } = await client.call(RANGE, KEY);
        assert.deepEqual([answer.kvs[0]?.modRevision, isRepeated], [7, false]);
      }
      assert.deepEqual([first?.calls.length, second?.calls.length], [5, 0]);
      assert.equal(first?.calls[0]?.header('hasleader'), 'true');
    });
  });

  test('leave a member that does not answer: its try may have happened', async () => {
    await withMembers([never, () => {}], async (client, [first, second]) => {
      assert.equal((await client.call(RANGE, KEY)).isRepeated, true);
      assert.equal((await client.call(RANGE, KEY)).isRepeated, false);
      assert.deepEqual([first?.calls.length, second?.calls.length], [1, 2]);
    });
  });

  test('leave a member that cannot be reached: nothing has happened', async () => {
    await withMembers([() => {}, () => {}], async (client, [first, second]) => {
      await first?.close();
      assert.equal((await client.call(RANGE, KEY)).isRepeated, false);
      assert.equal(second?.calls.length, 1);
    });
  });

  test('are tried again at the same member where there is no other', async () => {
    const answers = [
      fail(Code.RESOURCE_EXHAUSTED, 'etcdserver: too many requests'),
      fail(Code.UNAVAILABLE, 'x'),
      () => {},
    ];
    await withMembers([(call) => answers[call - 1]?.()], async (client, [only]) => {
      assert.equal((await client.call(RANGE, KEY)).isRepeated, true);
      assert.equal(only?.calls.length, 3);
    });
  });

  test('end with what each member has said', async () => {
    await withMembers([fail(Code.UNAVAILABLE, 'no leader'), never], async (client, [first, second]) => {
      const error = await client.call(RANGE, KEY).then(
        () => assert.fail(),
        (thrown: BigtableError) => thrown,
      );
      assert.equal(error.code, Code.UNAVAILABLE);
      assert.ok(error.message.includes(`etcd at ${first?.endpoint}: no leader`), error.message);
      assert.ok(error.message.includes(`etcd at ${second?.endpoint}: no answer to KV/Range within`), error.message);
    });
  });

  test('that are refused did nothing, unless an earlier try was not answered', async () => {
    const refuse = fail(Code.PERMISSION_DENIED, 'etcdserver: permission denied');
    await withMembers([refuse], async (client) => {
      await assert.rejects(client.call(RANGE, KEY), { code: Code.PERMISSION_DENIED });
    });
    await withMembers([never, refuse], async (client) => {
      await assert.rejects(client.call(RANGE, KEY), { code: Code.UNAVAILABLE });
    });
    // a lease that is gone was revoked by the earlier try
    await withMembers([never, fail(Code.NOT_FOUND, 'etcdserver: requested lease not found')], async (client) => {
      await assert.rejects(client.call(LEASE_REVOKE, { id: 1 }), { code: Code.NOT_FOUND });
    });
  });

  test('carry the token of their user, and sign in anew where it is refused', async () => {
    const user = { user: 'u', password: 'p' };
    const needs = (token: string) => (_call: number, rpc: RpcCall) => {
      if (rpc.header('token') !== token) fail(Code.UNAUTHENTICATED, 'etcdserver: invalid auth token')();
    };
    await withMembers(
      [needs('t2')],
      async (client, [only]) => {
        await client.call(RANGE, KEY);
        await client.call(RANGE, KEY);
        assert.deepEqual(
          only?.calls.map((call) => call.header('token')),
          ['t1', 't2', 't2'],
        );
      },
      user,
    );
    await withMembers(
      [needs('another')],
      async (client) => {
        await assert.rejects(client.call(RANGE, KEY), { code: Code.UNAUTHENTICATED });
      },
      user,
    );
  });
});
