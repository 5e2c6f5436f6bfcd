/**
 * The other callers during an attack: a health check, a read of one row and a write of one byte, again and again, each
 * timed.
 */
import { readFile } from 'node:fs/promises';
import { BigtableError, type Code } from '../../src/base/index.ts';
import { connect } from '../../src/boot/index.ts';
import { type Database, overService, RowMutation } from '../../src/embedded/index.ts';
import { ByteBudget, requestContext } from '../../src/env/index.ts';
import { systemClock, systemRandom } from '../../src/platform/index.ts';
import { WireClient } from '../../src/wire/index.ts';

const TABLE = 'others';
const HEALTH = '/grpc.health.v1.Health/Check';
const PAUSE_MS = 10;
/** A call that has no answer after this counts as this, and as unanswered. */
const LIMIT_MS = 5000;

export interface Answered {
  readonly calls: number;
  readonly unanswered: number;
  readonly medianMs: number;
  readonly longestMs: number;
}

export class OtherCallers {
  readonly #database: Database;
  readonly #health: WireClient;

  private constructor(database: Database, health: WireClient) {
    this.#database = database;
    this.#health = health;
  }

  get database(): Database {
    return this.#database;
  }

  /** Connects, and makes the table that is read and written. `caFile`: where the server speaks TLS. */
  static async connect(address: string, caFile?: string): Promise<OtherCallers> {
    const { service, env, close } = await connect(address, caFile === undefined ? {} : { tls: { caFile } });
    const database = overService(service, env, close);
    const errorOf = ({ code, message }: { code: Code; message: string }): BigtableError =>
      new BigtableError(code, message);
    const tls = caFile === undefined ? {} : { tls: { ca: await readFile(caFile) } };
    const callers = new OtherCallers(
      database,
      new WireClient({ address, clock: systemClock, random: systemRandom, errorOf, ...tls }),
    );
    await database.createTable(TABLE, { families: { f: {} } });
    await database.table(TABLE).apply(new RowMutation('known').set('f:q', 'value'));
    return callers;
  }

  /** Calls for so long, three kinds in turn. */
  async callFor(durationMs: number): Promise<Answered> {
    const kinds = [
      () => this.#check(),
      () => this.#database.table(TABLE).get('known'),
      () => this.#database.table(TABLE).apply(new RowMutation('written').set('f:q', 'x', 1000)),
    ];
    const times: number[] = [];
    let unanswered = 0;
    const end = performance.now() + durationMs;
    for (let i = 0; performance.now() < end; i++) {
      const start = performance.now();
      const inTime = await answeredInTime((kinds[i % kinds.length] as () => Promise<unknown>)());
      times.push(performance.now() - start);
      if (!inTime) unanswered++;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    times.sort((a, b) => a - b);
    return {
      calls: times.length,
      unanswered,
      medianMs: times[Math.floor(times.length / 2)] ?? 0,
      longestMs: times.at(-1) ?? 0,
    };
  }

  async close(): Promise<void> {
    this.#health.close();
    await this.#database.close();
  }

  #check(): Promise<unknown> {
    const context = requestContext({ budget: new ByteBudget(1024), deadlineMs: systemClock.monotonicMs() + LIMIT_MS });
    return this.#health.unary(HEALTH, new Uint8Array(0), context);
  }
}

async function answeredInTime(call: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), LIMIT_MS);
  });
  try {
    return await Promise.race([
      call.then(
        () => true,
        () => false,
      ),
      late,
    ]);
  } finally {
    clearTimeout(timer);
  }
}
