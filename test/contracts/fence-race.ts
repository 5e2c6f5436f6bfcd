/**
 * Races of a writer, two fencers and a sweep on one log of any slot store, by seed: calls that are slow, fail, lose
 * their answers and land late, processes that stand still or die at any call, trims all the while.
 */
import assert from 'node:assert/strict';
import { type BigtableError, crc32c, unavailable } from '../../src/base/index.ts';
import {
  type Clock,
  decodeSlotHeader,
  isMarker,
  ManualClock,
  rowsOf,
  SeededRandom,
  SLOT_HEADER_BYTES,
  SlotLogs,
  type SlotStore,
  sleep,
} from '../../src/env/index.ts';

const MAX_APPENDS = 40;

interface Process {
  pausedUntilMs: number;
  isDead: boolean;
}

export interface RaceOptions {
  readonly seed: number;
  readonly clock: Clock;
  /** The store as each of several machines has it. */
  readonly machines: readonly SlotStore[];
  readonly log: string;
}

class Race {
  readonly clock: Clock;
  readonly random: SeededRandom;
  /** The store as each machine has it; the writer's is the first. */
  readonly #machines: readonly SlotStore[];
  readonly log: string;
  /** Positions whose append was acknowledged, in order. */
  readonly acknowledged: number[] = [];
  readonly seen = { fenced: 0, late: 0, pauses: 0, deaths: 0, deleted: 0, otherRow: 0 };
  #underWay = 0;
  #processes = 0;

  constructor({ seed, clock, machines, log }: RaceOptions) {
    this.random = new SeededRandom(seed);
    this.clock = clock;
    this.#machines = machines;
    this.log = log;
  }

  get slots(): SlotStore {
    return this.#machines[0]!;
  }

  draws(share: number): boolean {
    return this.random.float() < share;
  }

  wait(mostMs: number): Promise<void> {
    return sleep(this.clock, this.random.float() * mostMs);
  }

  /** A process with a way to the store. */
  process(): { readonly process: Process; readonly logs: SlotLogs } {
    const process: Process = { pausedUntilMs: 0, isDead: false };
    const store = new Proxy(this.#machines[this.#processes++ % this.#machines.length]!, {
      get: (target, method: keyof SlotStore) => {
        const call = target[method] as (...args: unknown[]) => Promise<unknown>;
        return (...args: unknown[]) => this.#perform(process, () => call.apply(target, args));
      },
    });
    return {
      process,
      // in doubt each time: no lease protects this writer
      logs: new SlotLogs(store, { clock: this.clock, random: this.random, doubtMs: 0, switchAfterMs: 12 }),
    };
  }

  async #perform<T>(process: Process, act: () => Promise<T>): Promise<T> {
    await this.#turn(process);
    await this.wait(3);
    const fate = this.random.float();
    if (fate < 0.05) {
      await this.wait(5);
      throw unavailable('not reached');
    }
    if (fate < 0.15) {
      this.#underWay++;
      this.seen.late++;
      void this.wait(120)
        .then(act)
        .catch(() => undefined)
        .finally(() => this.#underWay--);
      await this.wait(20);
      throw unavailable('timed out');
    }
    const answer = await act();
    await this.wait(3);
    await this.#turn(process);
    if (fate < 0.25) throw unavailable('the answer was lost');
    return answer;
  }

  /** The process goes on from here, unless it dies. */
  async #turn(process: Process): Promise<void> {
    while (process.pausedUntilMs > this.clock.monotonicMs())
      await sleep(this.clock, process.pausedUntilMs - this.clock.monotonicMs());
    if (process.isDead) await new Promise(() => undefined);
  }

  async write(): Promise<void> {
    const { process, logs } = this.process();
    try {
      const log = await logs.openLog(this.log);
      for (let i = 1; i <= MAX_APPENDS; i++) {
        if (this.draws(0.05)) {
          this.seen.pauses++;
          process.pausedUntilMs = this.clock.monotonicMs() + this.random.float() * 300;
        }
        if (this.draws(0.005)) {
          this.seen.deaths++;
          process.isDead = true;
        }
        const position = await log.append([Buffer.from(`record ${i}`)]);
        assert.equal(position, i);
        this.acknowledged.push(position);
        if (this.draws(0.3)) await log.trimBefore(position - Math.floor(this.random.float() * 3));
        if (this.draws(0.3)) await this.wait(10);
      }
      await log.close();
    } catch (error) {
      if ((error as BigtableError).message?.includes('fenced')) this.seen.fenced++;
    }
  }

  /** Fences the log, and reads it. A process that died at it is followed by another. */
  async fence(): Promise<number[]> {
    await this.wait(150);
    if (this.draws(0.3)) {
      const first = this.process();
      first.logs.fence(this.log).catch(() => undefined);
      await this.wait(20);
      first.process.isDead = true;
      await this.wait(50);
    }
    const { process, logs } = this.process();
    if (this.draws(0.3)) process.pausedUntilMs = this.clock.monotonicMs() + this.random.float() * 100;
    if (this.draws(0.3))
      void this.wait(30).then(() => (process.pausedUntilMs = this.clock.monotonicMs() + this.random.float() * 100));
    await untilDone(() => logs.fence(this.log));
    return untilDone(() => this.read(logs));
  }

  async read(logs: SlotLogs): Promise<number[]> {
    const positions: number[] = [];
    for await (const { position, bytes } of logs.readLog(this.log)) {
      assert.equal(bytes.toString(), `record ${position}`);
      positions.push(position);
    }
    return positions;
  }

  async allLanded(): Promise<void> {
    while (this.#underWay > 0) await this.wait(50);
  }
}

/** As a master does it. */
async function untilDone<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      assert.match(String(error), /not reached|timed out|the answer was lost|outcome/);
    }
  }
}

function assertOrdered(positions: readonly number[]): void {
  for (const [i, position] of positions.entries()) assert.equal(position, positions[0]! + i, 'without a hole');
}

/** What was read once is what is read later, but for what is trimmed. */
function assertRest(later: readonly number[], before: readonly number[]): void {
  assert.deepEqual(later, before.slice(before.length - later.length), 'nothing behind the fence, nothing lost');
}

/** What happened in races, by name. */
export type RaceCounts = Record<string, number>;

/** Runs one race; throws where an append was acknowledged behind the fence, lost, or left behind by the sweep. */
export async function raceFence(options: RaceOptions): Promise<RaceCounts> {
  const race = new Race(options);
  try {
    await run(race, options.seed % 3 === 0);
  } catch (error) {
    throw new Error(`seed ${options.seed}: ${(error as Error).stack}`, { cause: error });
  }
  return { acknowledged: race.acknowledged.length, ...race.seen };
}

/**
 * The same over stores whose calls take real time: the simulated clock stands still while one is under way. `prefix`:
 * of the log's path.
 */
export async function raceFenceOver(machines: readonly SlotStore[], seed: number, prefix: string): Promise<RaceCounts> {
  const clock = new ManualClock();
  let underWay = 0;
  const counted = machines.map(
    (store) =>
      new Proxy(store, {
        get: (target, method: keyof SlotStore) => {
          const call = target[method] as (...args: unknown[]) => Promise<unknown>;
          return async (...args: unknown[]) => {
            underWay++;
            return call.apply(target, args).finally(() => underWay--);
          };
        },
      }),
  );
  let isOver = false;
  const race = raceFence({ seed, clock, machines: counted, log: `${prefix}/${seed}` }).finally(() => (isOver = true));
  // its outcome is awaited below
  race.catch(() => undefined);
  while (!isOver) {
    await new Promise((resolve) => setImmediate(resolve));
    const untilMs = clock.nextTimerMs();
    if (underWay === 0 && untilMs !== Number.POSITIVE_INFINITY) clock.advance(untilMs - clock.monotonicMs());
  }
  return race;
}

/** Adds up the counts of many races, and checks that what is to be raced with has happened. */
export function assertRaced(counts: readonly RaceCounts[]): RaceCounts {
  const total: RaceCounts = {};
  for (const one of counts) for (const [name, count] of Object.entries(one)) total[name] = (total[name] ?? 0) + count;
  const races = counts.length;
  assert.ok(total['acknowledged']! > 3 * races, `appends were made before the fence: ${JSON.stringify(total)}`);
  assert.ok(total['fenced']! > races / 3, `writers met the fence: ${JSON.stringify(total)}`);
  for (const name of ['late', 'pauses', 'deaths', 'otherRow'])
    assert.ok(total[name]! > races / 100, `${name}: ${total[name]}`);
  return total;
}

async function run(race: Race, isSwept: boolean): Promise<void> {
  const { acknowledged } = race;
  const writing = race.write();
  const [first, second] = await Promise.all([race.fence(), race.fence()]);
  for (const read of [first, second]) assertOrdered(read);
  assert.equal(first.at(-1), second.at(-1));
  const atFence = acknowledged.length;
  if (isSwept) await untilDone(() => race.process().logs.deleteLog(race.log));
  // a writer that is dead, or stands still for ever, never ends
  await Promise.race([writing, race.wait(1).then(() => sleep(race.clock, 5000))]);
  await race.allLanded();
  const last = first.at(-1) ?? 0;
  const unread = acknowledged.filter((position) => position > last);
  assert.deepEqual(unread, [], `acknowledged behind the fence; ${atFence} were acknowledged when it came`);

  const { logs } = race.process();
  if (!isSwept) {
    assertRest(await untilDone(() => race.read(logs)), first);
    for (const row of rowsOf(race.log)) {
      let highest = 0;
      for (let from = 0; ; from = highest + 1) {
        const { slots, isLast } = await race.slots.listSlots(row, from);
        highest = slots.at(-1) ?? highest;
        if (isLast) break;
      }
      const bytes = await race.slots.read(row, highest, 0, SLOT_HEADER_BYTES);
      assert.ok(isMarker(decodeSlotHeader(bytes!, row, highest, crc32c)), 'nothing is behind the marker');
      if (row !== rowsOf(race.log)[0] && highest > 1) race.seen.otherRow++;
    }
  }
  // the sweep goes on until nothing is left
  for (let sweeps = 0; (await untilDone(() => logs.listLogs(race.log))).length > 0; sweeps++) {
    assert.ok(sweeps < 20, 'the log vanishes');
    await untilDone(() => logs.deleteLog(race.log));
    await race.allLanded();
    race.seen.deleted++;
  }
}
