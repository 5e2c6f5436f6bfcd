/**
 * A database in a process of its own, which can be killed: a server that clients connect to, or a program with the
 * embedded library, which is sent its calls (embedded-program.ts).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { connect, type Database } from '../../src/embedded/index.ts';
import { type Call, type Outcome, perform } from './calls.ts';

/** A client's way to the database. */
export interface Connection {
  perform(call: Call): Promise<readonly Outcome[]>;
  close(): Promise<void>;
}

/** How processes are started. */
export interface Program {
  readonly kind: 'server' | 'embedded';
  /** The program and its arguments. */
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Bytes of output that are kept for messages. */
const MAX_OUTPUT = 64 * 1024;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export function startProcess(program: Program): DatabaseProcess {
  return program.kind === 'server' ? new ServerProcess(program) : new EmbeddedProcess(program);
}

export abstract class DatabaseProcess {
  /** The last of what it printed. */
  output = '';
  /** Its exit status, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  protected readonly child: ChildProcess;

  constructor({ kind, command, env }: Program) {
    const [file, ...args] = command;
    const child = spawn(file, args, {
      stdio: ['ignore', 'pipe', 'pipe', ...(kind === 'embedded' ? ['ipc' as const] : [])],
      env,
    });
    running.add(child);
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (this.output = (this.output + text).slice(-MAX_OUTPUT)));
    this.child = child;
    this.ended = new Promise((resolve) => {
      child.once('error', (error) => resolve(error.message));
      // after all of its output
      child.once('close', (code, signal) => {
        running.delete(child);
        resolve(code ?? signal ?? 'ended');
      });
    });
  }

  /** Sends the signal; resolves when the process has ended. */
  kill(signal: NodeJS.Signals): Promise<number | string> {
    this.child.kill(signal);
    return this.ended;
  }

  /** Connections for so many clients once the database is open. Rejects if the process ends before. */
  async connect(clients: number): Promise<readonly Connection[]> {
    const ended = this.ended.then(() => undefined);
    const connection = await Promise.race([this.opened(), ended]);
    if (connection === undefined)
      throw new Error(`the process ended with ${await this.ended} before it was open:\n${this.output}`);
    return Promise.all(Array.from({ length: clients }, () => connection()));
  }

  /** Resolves when the database is open, with a function that makes a connection. */
  protected abstract opened(): Promise<() => Promise<Connection>>;
}

class ServerProcess extends DatabaseProcess {
  protected override opened(): Promise<() => Promise<Connection>> {
    return new Promise((resolve) => {
      this.child.stdout!.on('data', () => {
        const address = /^listening on (\S+:\d+)$/m.exec(this.output)?.[1];
        if (address !== undefined) resolve(async () => connectionTo(await connect(address)));
      });
    });
  }
}

/** A message of the embedded program: it is open, or the answer to the call of that number. */
export type Message = 'open' | { readonly id: number; readonly outcomes: readonly Outcome[] };

class EmbeddedProcess extends DatabaseProcess {
  /** By number: calls without an answer. */
  readonly #calls = new Map<
    number,
    { readonly call: Call; readonly resolve: (outcomes: readonly Outcome[]) => void }
  >();
  #sent = 0;

  protected override opened(): Promise<() => Promise<Connection>> {
    void this.ended.then(() => {
      for (const { call, resolve } of this.#calls.values()) resolve(call.rows.map(() => LOST));
      this.#calls.clear();
    });
    return new Promise((resolve) => {
      this.child.on('message', (message: Message) => {
        if (message === 'open')
          return resolve(async () => ({ perform: (call) => this.#send(call), close: async () => {} }));
        this.#calls.get(message.id)?.resolve(message.outcomes);
        this.#calls.delete(message.id);
      });
    });
  }

  #send(call: Call): Promise<readonly Outcome[]> {
    if (!this.child.connected) return Promise.resolve(call.rows.map(() => LOST));
    const id = this.#sent++;
    return new Promise((resolve) => {
      this.#calls.set(id, { call, resolve });
      // an error says that the process has ended
      this.child.send({ id, call }, () => {});
    });
  }
}

const LOST: Outcome = { kind: 'unknown', code: 'UNAVAILABLE', message: 'the process has ended' };

function connectionTo(database: Database): Connection {
  return { perform: (call) => perform(database, call), close: () => database.close() };
}
