/**
 * A server in a process of its own that tests attack, and the other callers whom the attack must not harm.
 *
 * Each attack test asserts two things: the server holds bounded memory (`memory`), and `answerOthers` resolves while
 * the attack still goes on. Order is asserted, not time: the limit of each call is only there so that a failing test
 * ends.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { BigtableError, Code } from '../../src/base/index.ts';
import { connect } from '../../src/boot/index.ts';
import { type Database, overService, RowMutation } from '../../src/embedded/index.ts';
import { ByteBudget, requestContext } from '../../src/env/index.ts';
import { systemClock, systemRandom } from '../../src/platform/index.ts';
import { WireClient } from '../../src/wire/index.ts';
import { edubbaScript } from '../cli/edubba-script.ts';
import { userEnvironment } from '../cli/user-environment.ts';
import { RawPeer } from '../wire/raw-peer.ts';

export interface VictimOptions {
  /** Arguments after `serve --dir DIR --address 127.0.0.1:0`. */
  readonly words?: readonly string[];
  /** The limit of descriptors of the process. POSIX shells only. Default: the parent's. */
  readonly descriptors?: number;
  /** Where the data is. Default: a new temporary directory. */
  readonly directory?: string;
  /** For other callers, where the server asks for a token. */
  readonly token?: string;
  /** For other callers, where the server speaks TLS: the file of the authority that has signed its certificate. */
  readonly tlsCa?: string;
}

export interface VictimMemory {
  readonly rssBytes: number;
  readonly heapBytes: number;
  readonly externalBytes: number;
  /** The most that was resident at any time. */
  readonly peakRssBytes: number;
}

/**
 * The table that other callers read and write: family f, row `known` with the cell f:q = `value`. Attacks use tables or
 * rows of their own.
 */
export const OTHERS_TABLE = 'others';
const HEALTH = '/grpc.health.v1.Health/Check';
/** A caller that got no answer within this fails its test. */
const ANSWER_MS = 60_000;

export class Victim {
  readonly process: ChildProcess;
  readonly directory: string;
  address = '';
  out = '';
  err = '';
  readonly #ended: Promise<unknown[]>;
  readonly #token: string | undefined;
  readonly #tlsCa: string | undefined;
  readonly #t: TestContext;

  private constructor(t: TestContext, directory: string, options: VictimOptions) {
    const here = fileURLToPath(import.meta.url);
    const probe = new URL(`victim-probe${extname(here)}`, import.meta.url).href;
    const node = [
      process.execPath,
      ...process.execArgv.filter((word) => !word.startsWith('--test')),
      '--import',
      probe,
      edubbaScript(),
    ];
    const words = [...node, 'serve', '--dir', directory, '--address', '127.0.0.1:0', ...(options.words ?? [])];
    const limited =
      options.descriptors === undefined
        ? words
        : ['sh', '-c', `ulimit -n ${options.descriptors}; exec "$@"`, 'sh', ...words];
    this.#t = t;
    this.#token = options.token;
    this.#tlsCa = options.tlsCa;
    this.directory = directory;
    this.process = spawn(limited[0] as string, limited.slice(1), {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: userEnvironment(),
    });
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => (this.out += text));
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => (this.err += text));
    this.#ended = once(this.process, 'close');
    t.after(async () => {
      this.process.kill('SIGKILL');
      await this.#ended;
    });
  }

  /** Starts a server and makes the table of the other callers. */
  static async start(t: TestContext, options: VictimOptions = {}): Promise<Victim> {
    const scratch = options.directory === undefined ? await mkdtemp(join(tmpdir(), 'edubba-attack-')) : undefined;
    const victim = new Victim(t, options.directory ?? join(scratch!, 'data'), options);
    // after the end of the server, which would write on
    if (scratch !== undefined) t.after(() => rm(scratch, { recursive: true, force: true }));
    for (;;) {
      const address = /^listening on (\S+)$/m.exec(victim.out)?.[1];
      if (address !== undefined) {
        victim.address = address;
        break;
      }
      assert.equal(victim.process.exitCode, null, victim.err);
      await Promise.race([once(victim.process.stdout as NodeJS.ReadableStream, 'data'), victim.#ended]);
    }
    await victim.#makeTable();
    return victim;
  }

  get port(): number {
    return Number(this.address.slice(this.address.lastIndexOf(':') + 1));
  }

  /** A well-behaved client on a connection of its own. Closed after the test. */
  async database(): Promise<Database> {
    const { service, env, close } = await connect(this.address, {
      token: this.#token,
      tls: this.#tlsCa === undefined ? undefined : { caFile: this.#tlsCa },
    });
    const database = overService(service, env, close);
    this.#t.after(() => database.close());
    return database;
  }

  /** A connection that sends frames as it likes. Closed after the test. */
  async raw(): Promise<RawPeer> {
    const peer = await RawPeer.connect(this.port);
    this.#t.after(() => peer.destroy());
    return peer;
  }

  async memory(): Promise<VictimMemory> {
    const answer = once(this.process, 'message');
    this.process.send('memory');
    const [memory] = (await answer) as [VictimMemory];
    return memory;
  }

  /**
   * Resolves when a new caller each got answers to Health/Check, a read of one row, and a write of one byte. Rejects
   * with the first error.
   */
  async answerOthers(): Promise<void> {
    await Promise.all([this.#health(), this.#readAndWrite()]);
  }

  /**
   * `answerOthers`, and asserts that the attack, which resolves or rejects when it ends, was still under way after it.
   */
  async answerOthersDuring(attack: Promise<unknown>): Promise<void> {
    let isOver = false;
    const end = (): void => void (isOver = true);
    attack.then(end, end);
    await this.answerOthers();
    assert.equal(isOver, false, 'the attack ended before the other callers were answered');
  }

  /** Ends the server in order; the exit status, or the signal that ended it. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string> {
    this.process.kill(signal);
    return this.ended();
  }

  /** Exit status, or the signal that ended it. */
  async ended(): Promise<number | string> {
    const [code, signal] = await this.#ended;
    return (code ?? signal) as number | string;
  }

  async #makeTable(): Promise<void> {
    const database = await this.database();
    if (await database.hasTable(OTHERS_TABLE)) return;
    const table = await database.createTable(OTHERS_TABLE, { families: { f: {} } });
    await table.apply(new RowMutation('known').set('f:q', 'value'));
  }

  async #health(): Promise<void> {
    const errorOf = ({ code, message }: { code: Code; message: string }): BigtableError =>
      new BigtableError(code, message);
    const tls = this.#tlsCa === undefined ? {} : { tls: { ca: readFileSync(this.#tlsCa) } };
    const client = new WireClient({ address: this.address, clock: systemClock, random: systemRandom, errorOf, ...tls });
    try {
      const context = requestContext({
        budget: new ByteBudget(1024),
        deadlineMs: systemClock.monotonicMs() + ANSWER_MS,
      });
      const answer = await client.unary(HEALTH, new Uint8Array(0), context);
      assert.deepEqual([...answer], [8, 1], 'SERVING');
    } finally {
      client.close();
    }
  }

  async #readAndWrite(): Promise<void> {
    const database = await this.database();
    const table = database.table(OTHERS_TABLE);
    const late = new BigtableError(Code.DEADLINE_EXCEEDED, `no answer within ${ANSWER_MS} ms`);
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(late), ANSWER_MS);
    });
    try {
      const [row] = await Promise.race([
        Promise.all([table.get('known'), table.apply(new RowMutation('written').set('f:q', 'x'))]),
        limit,
      ]);
      assert.equal(row?.get('f:q')?.text, 'value');
    } finally {
      clearTimeout(timer);
      await database.close();
    }
  }
}
