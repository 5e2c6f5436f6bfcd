/**
 * Moves tablets from servers with too much to those with too little: each is flushed and released by its server, and
 * goes through the assignment queue to the other one (docs/decisions/0068-balancing.md). METADATA's tablets are
 * balanced by themselves, after users' tablets. The root tablet is moved by no balancing.
 *
 * Invariants: a server gives away, and takes, at most MOVES_PER_SERVER tablets at a time, and METADATA's move one by
 * one. A tablet that was moved is not moved for the sake of requests or bytes for MOVE_AGAIN_MS. Wherever a move is cut
 * short, the queue finishes it.
 */
import { assert, type BigtableError, Places, toBigtableError } from '../base/index.ts';
import { type Env, Pacer, type RequestContext } from '../env/index.ts';
import { isMetadataTablet, type MetadataKey, ROOT_KEY } from '../metadata/index.ts';
import { isDeposed } from '../protocol/index.ts';
import type { Assignment } from './assignment.ts';
import type { AssignmentQueue } from './assignment-queue.ts';
import { type Move, planMoves, type ServerLoad, type TabletLoad } from './balance.ts';
import type { LiveServer } from './live-server.ts';
import type { Servers } from './servers.ts';

/** A tablet that moves keeps its rows waiting for a moment, and its servers busy. */
const MOVES_PER_SERVER = 4;
const MOVE_AGAIN_MS = 600_000;
/** The clock is read once in this number of chosen moves. A move takes 10 us to choose. */
const MOVES_PER_LOOK = 16;

export interface BalancerOptions {
  readonly env: Env;
  readonly servers: Servers;
  readonly assignment: Assignment;
  readonly queue: AssignmentQueue;
  readonly context: () => RequestContext;
}

export class Balancer {
  readonly #options: BalancerOptions;
  /** By tablet, when it was moved. */
  readonly #movedMs = new Map<MetadataKey, number>();
  /** True when the moves that are left were chosen for other servers than there are now. */
  #isOutdated = false;
  #isRunning = false;

  constructor(options: BalancerOptions) {
    this.#options = options;
  }

  /** A server has come or died: the moves under way are finished, and no others of those that were chosen begin. */
  outdated(): void {
    this.#isOutdated = true;
  }

  /** Chooses moves and makes them. Returns how many were made; without effect while it runs. */
  async run(): Promise<number> {
    if (this.#isRunning) return 0;
    this.#isRunning = true;
    this.#isOutdated = false;
    try {
      const moved = await this.#makeAll(await this.#plan((key) => !isMetadataTablet(key)));
      return moved + (await this.#moveMetadata());
    } finally {
      this.#isRunning = false;
    }
  }

  /** While one of METADATA's tablets moves, the rows that it holds wait: so one moves at a time. */
  async #moveMetadata(): Promise<number> {
    const isMovable = (key: MetadataKey): boolean => isMetadataTablet(key) && key !== ROOT_KEY;
    let moved = 0;
    for (const move of await this.#plan(isMovable)) {
      if (this.#isOutdated) break;
      if (await this.#make(move)) moved++;
    }
    return moved;
  }

  /** The moves of the tablets that `isCounted` says. Tablets that come or go meanwhile are not moved. */
  async #plan(isCounted: (key: MetadataKey) => boolean): Promise<Move[]> {
    const { servers, env } = this.#options;
    const now = env.clock.monotonicMs();
    for (const [key, atMs] of this.#movedMs) if (now - atMs >= MOVE_AGAIN_MS) this.#movedMs.delete(key);
    const pacer = new Pacer(env.clock, MOVES_PER_LOOK);
    const loads: ServerLoad[] = [];
    for (const { name, tablets } of servers.all()) {
      if (pacer.due(MOVES_PER_LOOK)) await pacer.pause();
      const own = [...tablets].flatMap(([key, epoch]) => (isCounted(key) ? [this.#loadOf(key, epoch)] : []));
      loads.push({ name, tablets: own });
    }
    const plan = planMoves(loads);
    for (;;) {
      if (pacer.due()) await pacer.pause();
      const { done, value } = plan.next();
      if (done) return value;
    }
  }

  /** A tablet that is being given stays for now. */
  #loadOf(key: MetadataKey, epoch: number): TabletLoad {
    const figures = this.#options.servers.figures.get(key);
    return {
      key,
      epoch,
      sizeBytes: figures?.sizeBytes ?? 0,
      requestRate: Math.round(figures?.requestRate ?? 0),
      isFixed: epoch === 0,
      wasMoved: this.#movedMs.has(key),
    };
  }

  async #makeAll(moves: readonly Move[]): Promise<number> {
    const bySource = new Map<string, Move[]>();
    const takers = new Map<string, Places>();
    for (const move of moves) {
      const own = bySource.get(move.from);
      if (own === undefined) bySource.set(move.from, [move]);
      else own.push(move);
      if (!takers.has(move.to)) takers.set(move.to, new Places(MOVES_PER_SERVER));
    }
    let moved = 0;
    const give = async (left: Iterator<Move>): Promise<void> => {
      for (;;) {
        const { value: move, done } = left.next();
        if (done || this.#isOutdated) return;
        await takers.get(move.to)!.take(async () => {
          if (!this.#isOutdated && (await this.#make(move))) moved++;
        });
      }
    };
    await Promise.all(
      [...bySource.values()].flatMap((own) => {
        const left = own.values();
        return Array.from({ length: MOVES_PER_SERVER }, () => give(left));
      }),
    );
    return moved;
  }

  async #make({ tablet: { key, epoch }, from, to }: Move): Promise<boolean> {
    const { servers, env } = this.#options;
    const [owner, next] = [servers.get(from), servers.get(to)];
    assert(from !== to, 'a tablet is moved to another server');
    if (owner === undefined || next === undefined || owner.tablets.get(key) !== epoch) return false;
    const failure = await this.#moveFrom(owner, key, epoch, next);
    if (failure !== undefined) return false;
    this.#movedMs.set(key, env.clock.monotonicMs());
    env.metrics.add('master.movedTablets');
    return true;
  }

  /** Returns the reason why the tablet was not moved. */
  async #moveFrom(
    owner: LiveServer,
    key: MetadataKey,
    epoch: number,
    next: LiveServer,
  ): Promise<BigtableError | 'was not released' | undefined> {
    const { assignment, queue, env, context } = this.#options;
    let isReleased: boolean;
    try {
      isReleased = await assignment.release(owner, { key, epoch }, context());
    } catch (thrown) {
      const error = toBigtableError(thrown);
      if (isDeposed(error)) throw error;
      env.logger.info('a tablet was not moved', { server: owner.name, error: error.message });
      // it may have released the tablet
      owner.drop(key);
      return (await queue.look(key)) ?? 'was not released';
    }
    if (!isReleased && owner.tablets.has(key)) return 'was not released';
    const failure = await queue.look(key, undefined, next.name);
    return isReleased ? failure : 'was not released';
  }
}
