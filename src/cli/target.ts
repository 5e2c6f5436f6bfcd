/**
 * What a command works on: a directory, opened in this process, or a server at an address. The address may come from --address or from
 * BIGTABLE_EMULATOR_HOST, which the official clients read too; a bearer token from --token-file or EDUBBA_TOKEN.
 */
import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { invalidArgument, notFound } from '../base/index.ts';
import { findDirectory, modeForOthers } from '../boot/index.ts';
import { connect, type Database, open } from '../embedded/index.ts';
import type { Terminal } from './terminal.ts';

interface TargetOptions {
  readonly dir?: string;
  readonly address?: string;
  readonly project: string;
  readonly instance: string;
  readonly json?: boolean;
  readonly tls?: boolean;
  readonly tlsCa?: string;
  readonly tlsKey?: string;
  readonly tlsCert?: string;
  readonly tokenFile?: string;
}

/** What a command has at hand: its options, where it prints, and the database they name. */
export class Session {
  readonly options: TargetOptions;
  readonly terminal: Terminal;

  constructor(command: Command, terminal: Terminal) {
    this.options = command.optsWithGlobals<TargetOptions>();
    this.terminal = terminal;
  }

  get json(): boolean {
    return this.options.json === true;
  }

  /** What stands before a table's id in its full name. */
  get prefix(): string {
    const { project, instance } = this.options;
    return `projects/${project}/instances/${instance}/tables/`;
  }

  /** Table ids as the user gives them, in full. Full names pass. */
  tableName(id: string): string {
    return id.includes('/') ? id : `${this.prefix}${id}`;
  }

  /** `create`: a directory without a database gets one. */
  async withDatabase<T>(work: (database: Database) => Promise<T>, { create = false } = {}): Promise<T> {
    const { dir, address } = this.options;
    if (dir !== undefined && address !== undefined) throw invalidArgument(`give either --dir (${dir}) or --address (${address}), not both`);
    if (dir !== undefined) return use(await openDirectory(dir, create), work);
    const where = address ?? this.terminal.environment['BIGTABLE_EMULATOR_HOST'];
    if (where === undefined || where === '') {
      throw invalidArgument('say where the data is: --dir DIR, or --address HOST:PORT of a server (or BIGTABLE_EMULATOR_HOST)');
    }
    await this.#warnOfFiles();
    const { project, instance } = this.options;
    return use(await connect(where, { project, instance, tls: this.#tls, token: await this.#token() }), work);
  }

  /** Whoever names a file for TLS wants TLS. */
  get #tls(): { caFile: string | undefined; keyFile: string | undefined; certFile: string | undefined } | undefined {
    const { tls, tlsCa: caFile, tlsKey: keyFile, tlsCert: certFile } = this.options;
    return tls || caFile !== undefined || keyFile !== undefined || certFile !== undefined ? { caFile, keyFile, certFile } : undefined;
  }

  /** Tells of secrets that others than their owner can read. */
  async #warnOfFiles(): Promise<void> {
    for (const file of [this.options.tokenFile, this.options.tlsKey]) {
      const mode = file === undefined ? undefined : await modeForOthers(file, 'secret');
      if (mode !== undefined) this.terminal.complain(`edubba: warning: ${file} is secret and can be read by other users of this machine (mode ${mode}): chmod 600 ${file}\n`);
    }
  }

  async #token(): Promise<string | undefined> {
    const { tokenFile } = this.options;
    if (tokenFile === undefined) return this.terminal.environment['EDUBBA_TOKEN'] || undefined;
    const text = await readFile(tokenFile, 'utf8').catch((error: Error) => {
      throw invalidArgument(`cannot read the token: ${error.message}`);
    });
    return text.trim();
  }
}

async function use<T>(database: Database, work: (database: Database) => Promise<T>): Promise<T> {
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

/** A mistyped name must not make a database. */
async function openDirectory(dir: string, create: boolean): Promise<Database> {
  if (dir === ':memory:') throw invalidArgument('a database in memory would end with this command: give --dir a directory');
  if (!create && (await findDirectory(dir)) === undefined) {
    throw notFound(`there is no database in ${dir}; createtable and serve make one where there is none`);
  }
  return open(dir);
}
