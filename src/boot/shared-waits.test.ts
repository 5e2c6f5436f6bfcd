/**
 * Calls that wait for work of another call: each ends at its own deadline and when its caller cancels, and none is
 * failed by another's end.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../base/index.ts';
import { type LockService, Metrics, type RequestContext, requestContext, type Transport } from '../env/index.ts';
import { type AssignedTablet, Locator, MetadataClient, SchemaCache } from '../locator/index.ts';
import { Database } from './open/database.ts';
import { keepAlive, rejectsWith, TABLES, TestDatabase, World } from './fixtures.ts';
import { checkSettings } from './settings/settings.ts';

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

class Gate {
  #isOpen = true;
  #open = (): void => {};
  #passed = Promise.resolve();
  readonly #reached: (() => void)[] = [];

  close(): void {
    this.#isOpen = false;
    this.#passed = new Promise((resolve) => (this.#open = resolve));
  }

  open(): void {
    this.#isOpen = true;
    this.#open();
  }

  /** Resolves when a call next waits at it. */
  reached(): Promise<void> {
    return new Promise((resolve) => this.#reached.push(resolve));
  }

  async pass(): Promise<void> {
    for (const resolve of this.#reached.splice(0)) resolve();
    if (!this.#isOpen) await this.#passed;
  }
}

/** Reads of METADATA wait before the gate. */
function slowed(inner: Transport, gate: Gate): Transport {
  return {
    serve: (address, handler) => inner.serve(address, handler),
    call: (address, method, message, context) => inner.call(address, method, message, context),
    stream: (address, method, message, context) =>
      (async function* () {
        await gate.pass();
        yield* inner.stream(address, method, message, context);
      })(),
  };
}

/** Reads of small files wait before the gate. */
function slowReads(inner: LockService, gate: Gate): LockService {
  return new Proxy(inner, {
    get: (target, name: keyof LockService) => {
      if (name === 'read') return (path: string) => gate.pass().then(() => target.read(path));
      const value = target[name] as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

async function climbing(): Promise<{
  db: TestDatabase;
  gate: Gate;
  locate: (context: RequestContext) => Promise<AssignedTablet>;
}> {
  const db = await new World().start();
  await db.create('t', { splits: ['b'] });
  const { id } = await db.service.getTable(db.context(), `${TABLES}t`);
  const gate = new Gate();
  const { env } = db;
  const locator = new Locator({ ...env, metrics: new Metrics(), transport: slowed(env.transport, gate) });
  // the levels above are known
  await locator.locate(id, 'z', db.context());
  assert.equal(locator.cached(id, 'a'), undefined);
  return { db, gate, locate: (context) => locator.locate(id, 'a', context) };
}

describe('callers that wait for another’s lookup', () => {
  test('end at their own deadline and when they are cancelled, and the lookup continues for the others', async () => {
    const { db, gate, locate } = await climbing();
    gate.close();
    const reached = gate.reached();
    const patient = locate(db.context());
    await reached;
    await rejectsWith(Code.DEADLINE_EXCEEDED, locate(db.context(20)));
    await rejectsWith(Code.DEADLINE_EXCEEDED, locate(db.context(0)));
    const caller = new AbortController();
    const givenUp = locate(requestContext({ budget: db.env.requestBudget, signal: caller.signal }));
    caller.abort();
    await rejectsWith(Code.CANCELLED, givenUp);
    const alsoPatient = locate(db.context());
    gate.open();
    assert.deepEqual((await patient).range, { start: '', end: 'b' });
    assert.deepEqual((await alsoPatient).range, { start: '', end: 'b' });
    await db.close();
  });

  test('are not failed by the end of the caller that looks up: one of them begins anew', async () => {
    for (const ends of ['deadline', 'abort'] as const) {
      const { db, gate, locate } = await climbing();
      gate.close();
      const reached = gate.reached();
      const caller = new AbortController();
      const climber = locate(
        ends === 'deadline' ? db.context(20) : requestContext({ budget: db.env.requestBudget, signal: caller.signal }),
      );
      // it is awaited below
      climber.catch(() => {});
      await reached;
      const patient = [locate(db.context()), locate(db.context())];
      caller.abort();
      // between the answers of a stream its reader watches the context: release the first one
      gate.open();
      const outcome = await climber.then(
        () => 'found',
        ({ code }: { code: number }) => code,
      );
      assert.ok(
        outcome === 'found' || outcome === (ends === 'deadline' ? Code.DEADLINE_EXCEEDED : Code.CANCELLED),
        `${outcome}`,
      );
      for (const each of patient) assert.deepEqual((await each).range, { start: '', end: 'b' });
      await db.close();
    }
  });
});

describe('callers that wait for the lock service', () => {
  test('end at their own deadline: the root, schemas, the master', async () => {
    const gate = new Gate();
    const world = new World();
    const env = await world.env();
    const lockService = slowReads(env.lockService, gate);
    const db = new TestDatabase(await Database.start({ env: { ...env, lockService }, settings: checkSettings({}) }));
    await db.create('t');
    const { id } = await db.service.getTable(db.context(), `${TABLES}t`);
    gate.close();
    const locator = new Locator({ ...env, lockService });
    const metadata = new MetadataClient({ ...env, lockService, locator, stopped: () => false });
    const calls: ((context: RequestContext) => Promise<unknown>)[] = [
      (context) => locator.locate(id, 'a', context),
      (context) => metadata.readRoot(context),
      (context) => db.service.getTable(context, `${TABLES}t`),
      (context) =>
        db.service.mutateRow(context, `${TABLES}unknown`, { row: 'a', mutations: [{ kind: 'deleteFromRow' }] }),
      (context) => db.service.sampleRowKeys(context, `${TABLES}unknown`),
      (context) => db.service.deleteTable(context, `${TABLES}unknown`),
    ];
    for (const [i, call] of calls.entries()) {
      // the first is the one that reads, the second waits with it
      const both = [call(db.context(30)), call(db.context(30))];
      await Promise.all(
        both.map((each) => rejectsWith(Code.DEADLINE_EXCEEDED, each).catch((error) => assert.fail(`${i}: ${error}`))),
      );
    }
    gate.open();
    await db.service.getTable(db.context(), `${TABLES}t`);
    await db.close();
  });

  test('share the next read of a schema, however many they are', async () => {
    const db = await new World().start();
    await db.create('t');
    const gate = new Gate();
    let reads = 0;
    const lockService = slowReads(db.env.lockService, gate);
    const counted = new Proxy(lockService, {
      get: (target, name: keyof LockService) => {
        if (name === 'read') reads++;
        return target[name];
      },
    });
    const schemas = new SchemaCache({ lockService: counted, clock: db.env.clock }, (error) => assert.fail(`${error}`));
    await schemas.start();
    gate.close();
    const first = schemas.read(`${TABLES}t`);
    const others = Array.from({ length: 1000 }, () => schemas.read(`${TABLES}t`));
    gate.open();
    for (const each of [first, ...others]) assert.equal((await each)?.schema.name, `${TABLES}t`);
    assert.equal(reads, 2, 'one under way, and one that begins after all of their requests');
    schemas.stop();
    await db.close();
  });
});
