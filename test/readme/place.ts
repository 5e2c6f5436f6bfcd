/**
 * A folder in which the snippets of a page are run as a reader would run them: in a shell, one after the other, from
 * the top of a checkout, with `edubba` on the search path and a project of a user's next to it.
 *
 * Invariant: a command that ends with another status than 0 fails the test, and what a block has started has ended when
 * the block has.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type Block, commandsOf } from './markdown.ts';

export const ROOT = fileURLToPath(
  new URL(import.meta.url.includes('/dist/test/') ? '../../../' : '../../', import.meta.url),
);
/** Parts of a checkout that a reader's commands do not use, or must not write to. */
const NOT_LINKED = ['.git', 'node_modules', 'dist', 'edubba-data'];
const SERVES = /(^| )(npm start|serve)( |$)/;
/** Strict, as in a project of today. */
const TSCONFIG = {
  compilerOptions: {
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
    module: 'nodenext',
    target: 'es2022',
    lib: ['es2023', 'esnext.disposable'],
    types: ['node'],
    skipLibCheck: false,
  },
  include: ['*.ts'],
};

/**
 * Replacements in the text of a page, which a reader would make too: each port and file name of the reader's own.
 */
export type Replacements = readonly (readonly [from: string, to: string])[];

export interface Done {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

export class Place {
  readonly directory: string;
  /** On which nothing listens. */
  readonly port: number;
  readonly #environment: Record<string, string | undefined>;
  #programs = 0;

  private constructor(directory: string, port: number) {
    this.directory = directory;
    this.port = port;
    const { BIGTABLE_EMULATOR_HOST: _, EDUBBA_TOKEN: _token, ...environment } = process.env;
    this.#environment = {
      ...environment,
      NODE_NO_WARNINGS: '1',
      PATH: `${join(directory, '.bin')}${delimiter}${environment['PATH']}`,
    };
  }

  static async make(t: TestContext): Promise<Place> {
    const directory = await mkdtemp(join(tmpdir(), 'edubba-readme-'));
    t.after(() => rm(directory, { recursive: true, force: true }));
    for (const name of await readdir(ROOT))
      if (!NOT_LINKED.includes(name)) await symlink(join(ROOT, name), join(directory, name));
    await mkdir(join(directory, '.bin'));
    await symlink(join(ROOT, 'bin/edubba'), join(directory, '.bin/edubba'));
    return new Place(directory, await freePort());
  }

  /** A file of the page's reader's own, such as a certificate. */
  async provide(name: string, from: string): Promise<void> {
    await cp(join(ROOT, from), join(this.directory, name));
  }

  async write(name: string, text: string): Promise<void> {
    await writeFile(join(this.directory, name), text);
  }

  /**
   * Runs the block's commands; returns what they printed. Servers among them run until the block ends. `export` lasts.
   */
  async shell(block: Block, replacements: Replacements = []): Promise<string> {
    const servers: Server[] = [];
    let out = '';
    try {
      for (const command of commandsOf({ ...block, text: this.#replaced(block.text, replacements) })) {
        const [, name, value] = /^export (\w+)=(\S*)$/.exec(command) ?? [];
        if (name !== undefined) this.#environment[name] = value;
        else if (SERVES.test(command)) servers.push(await this.#serve(command));
        else {
          const done = await this.run('bash', ['-euo', 'pipefail', '-c', command]);
          assert.equal(done.status, 0, `line ${block.line}: ${command}\n${done.out}${done.err}`);
          out += done.out;
        }
      }
    } finally {
      for (const server of servers) out += await server.stop();
    }
    return out;
  }

  /** Runs `body` while a server listens on the free port, as the page had the reader start one before. */
  async beside<T>(body: () => Promise<T>): Promise<T> {
    const server = await this.#serve(`edubba serve --dir ./served --address 127.0.0.1:${this.port}`);
    try {
      return await body();
    } finally {
      await server.stop();
    }
  }

  /**
   * Runs a program in TypeScript in a project that has Edubba as a dependency, checked strictly first, `times` times;
   * returns what it printed last.
   */
  async program(
    block: Block,
    { times = 1, replacements = [] }: { readonly times?: number; readonly replacements?: Replacements } = {},
  ): Promise<string> {
    const project = join(this.directory, `.project-${++this.#programs}`);
    await mkdir(join(project, 'node_modules/@types'), { recursive: true });
    await symlink(ROOT, join(project, 'node_modules/edubba'));
    for (const name of ['@types/node', 'undici-types'])
      await symlink(join(ROOT, 'node_modules', name), join(project, 'node_modules', name));
    await writeFile(join(project, 'package.json'), '{ "type": "module", "private": true }');
    await writeFile(join(project, 'tsconfig.json'), JSON.stringify(TSCONFIG));
    await writeFile(join(project, 'program.ts'), this.#replaced(block.text, replacements));
    const checked = await this.run(process.execPath, [
      join(ROOT, 'node_modules/typescript-native/bin/tsc'),
      '-p',
      project,
    ]);
    assert.equal(checked.status, 0, `line ${block.line}: the program does not compile:\n${checked.out}${checked.err}`);
    const loader = pathToFileURL(createRequire(join(ROOT, 'package.json')).resolve('tsx')).href;
    let out = '';
    for (let time = 1; time <= times; time++) {
      const done = await this.run(process.execPath, ['--import', loader, 'program.ts'], project);
      assert.equal(
        done.status,
        0,
        `line ${block.line}: the program fails when it is run for the ${time}. time:\n${done.out}${done.err}`,
      );
      out = done.out;
    }
    return out;
  }

  /** Every replacement must have something to replace, so that none outlives what it was made for. */
  #replaced(text: string, replacements: Replacements): string {
    let replaced = text;
    for (const [from, to] of replacements) {
      assert.ok(text.includes(from), `${from} is to be replaced, and is not there:\n${text}`);
      replaced = replaced.replaceAll(from, to);
    }
    return replaced;
  }

  async run(command: string, args: readonly string[], cwd = this.directory): Promise<Done> {
    const child = spawn(command, args, { cwd, env: this.#environment, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    let err = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
    const [status] = await once(child, 'close');
    return { status: status ?? 1, out, err };
  }

  async #serve(command: string): Promise<Server> {
    const server = new Server(
      spawn('bash', ['-c', command], {
        cwd: this.directory,
        env: this.#environment,
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
      }),
    );
    await server.ready();
    return server;
  }
}

/** A server in the background, as a reader has it in another terminal. */
class Server {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #said = '';

  constructor(child: ChildProcess) {
    this.#child = child;
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#said += text));
    this.#ended = once(child, 'close');
  }

  async ready(): Promise<void> {
    while (!/^listening on /m.test(this.#said)) {
      assert.equal(this.#child.exitCode, null, this.#said);
      await Promise.race([once(this.#child.stdout as NodeJS.ReadableStream, 'data'), this.#ended]);
    }
  }

  /** As Ctrl-C in the terminal: the whole group of processes gets the signal. */
  async stop(): Promise<string> {
    process.kill(-(this.#child.pid as number), 'SIGINT');
    await this.#ended;
    assert.match(this.#said, /^stopping on SIGINT$/m);
    return this.#said;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : assert.fail('no port');
}
