/**
 * Sends hostile requests to a server of the API: every damage of every call, then random requests until there are as
 * many as wanted. Used by a test, and by scripts/hostile.mjs against a server in a process of its own.
 *
 * Invariant: an answer has a documented status, and refuses what must be refused.
 */
import type { DescMethod } from '@bufbuild/protobuf';
import { BigtableError, Code, codeName } from '../../../base/index.ts';
import { type RequestContext, SeededRandom } from '../../../env/index.ts';
import { systemClock } from '../../../platform/index.ts';
import type { WireClient } from '../../../wire/index.ts';
import { METHODS, nameOf, STEPS, takeStep } from '../every-call/fixtures.ts';
import type { ApiClient } from '../fixtures.ts';
import { everyDamage, type Expected, RandomRequests } from '../hostile/fixtures.ts';

/**
 * UNKNOWN, INTERNAL and DATA_LOSS are faults of the server, and so is DEADLINE_EXCEEDED: no call takes long.
 * UNAVAILABLE: the server is gone.
 */
const DOCUMENTED = new Set<number>([
  Code.OK,
  Code.INVALID_ARGUMENT,
  Code.NOT_FOUND,
  Code.ALREADY_EXISTS,
  Code.PERMISSION_DENIED,
  Code.RESOURCE_EXHAUSTED,
  Code.FAILED_PRECONDITION,
  Code.ABORTED,
  Code.OUT_OF_RANGE,
  Code.UNIMPLEMENTED,
]);
const MAX_MESSAGE_CHARS = 3000;
/** A good answer of this call goes on until its caller ends it. */
const ENDLESS = /^ReadChangeStream$/;
const ENDLESS_MS = 500;
/** Requests that are under way at the same time. */
const BATCH = 42;
/** Requests after which what they have deleted is made again. */
const ROUND = 420;
const DELETES = /^(Delete|Drop|Undelete)/;

export interface Target {
  readonly wire: WireClient;
  readonly api: ApiClient;
  /** A context for one call. */
  context(): RequestContext;
}

export interface Findings {
  /** Answers by the name of their status. */
  readonly codes: Map<string, number>;
  /** Calls that answered OK at least once. */
  readonly calls: Set<string>;
  sent: number;
  slowestMs: number;
  slowest: string;
  /** A line for each answer that no server may give. */
  readonly wrong: string[];
}

interface Sent {
  readonly method: DescMethod;
  readonly what: string;
  readonly expected: Expected;
  readonly bytes: Buffer;
}

const isAs = (expected: Expected, code: number): boolean =>
  expected === 'any' || (expected === 'error' ? code !== Code.OK : code === Code.INVALID_ARGUMENT);

/** What the requests are about. */
async function setUp(api: ApiClient): Promise<void> {
  for (const step of STEPS) if (!DELETES.test(step.method.name)) await takeStep(step, api, { consistencyToken: 'x' });
}

async function send(
  { wire, context }: Target,
  { method, what, expected, bytes }: Sent,
  found: Findings,
): Promise<void> {
  let [code, text]: [number, string] = [Code.OK, ''];
  const start = performance.now();
  const isEndless = ENDLESS.test(method.name);
  const asked = isEndless ? { ...context(), deadlineMs: systemClock.monotonicMs() + ENDLESS_MS } : context();
  try {
    for await (const _ of wire.stream(`/${nameOf(method)}`, bytes, asked));
  } catch (error) {
    if (!(error instanceof BigtableError)) throw error;
    const isEnded = isEndless && error.code === Code.DEADLINE_EXCEEDED;
    if (!isEnded) [code, text] = [error.code, error.message];
  }
  const tookMs = performance.now() - start;
  const line = `${method.name}: ${what}`;
  if (tookMs > found.slowestMs) [found.slowestMs, found.slowest] = [tookMs, line];
  const name = codeName(code as Code);
  found.codes.set(name, (found.codes.get(name) ?? 0) + 1);
  if (code === Code.OK) found.calls.add(nameOf(method));
  if (!DOCUMENTED.has(code) || text.length > MAX_MESSAGE_CHARS || !isAs(expected, code))
    found.wrong.push(`${line}: ${name} ${text.slice(0, 200)}: ${bytes.toString('base64').slice(0, 2000)}`);
  found.sent++;
}

function* requests(count: number, random: RandomRequests, allValues: boolean): Generator<Sent> {
  let left = count;
  for (const method of METHODS)
    for (const { damage, field, expected, bytes } of everyDamage(method, { allValues }))
      if (left-- > 0) yield { method, what: `${damage} ${field}`, expected, bytes };
  for (let i = 0; left-- > 0; i++) {
    const method = METHODS[i % METHODS.length]!;
    yield { method, what: 'random', expected: 'any', bytes: random.bytes(method) };
  }
}

/**
 * Sends `count` requests. `allValues`: each damage with all of its values. `onRound` is called now and then; nothing
 * more is sent once it returns false.
 */
export async function attack(
  target: Target,
  options: {
    readonly count: number;
    readonly seed: number;
    readonly allValues?: boolean;
    onRound?(found: Findings): boolean;
  },
): Promise<Findings> {
  const { count, seed, allValues = false, onRound = () => true } = options;
  const found: Findings = { codes: new Map(), calls: new Set(), sent: 0, slowestMs: 0, slowest: '', wrong: [] };
  let batch: Sent[] = [];
  const flush = async (): Promise<void> => {
    await Promise.all(batch.map((request) => send(target, request, found)));
    batch = [];
  };
  await setUp(target.api);
  for (const request of requests(count, new RandomRequests(new SeededRandom(seed)), allValues)) {
    batch.push(request);
    if (batch.length < BATCH) continue;
    await flush();
    if (found.sent % ROUND === 0) await setUp(target.api);
    if (!onRound(found)) break;
  }
  await flush();
  return found;
}
