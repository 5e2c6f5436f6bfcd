/**
 * The database of a command: a directory, opened in this process, or a server at an address. The address may come from
 * --address or from BIGTABLE_EMULATOR_HOST, which the official clients read too; a bearer token from --token-file or
 * EDUBBA_TOKEN.
 */
import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { invalidArgument, notFound } from '../../base/index.ts';
import { connect as connectService, findDirectory, modeForOthers, openDatabase } from '../../boot/index.ts';
import { connect, type Database, open, type Table } from '../../embedded/index.ts';
import { type RequestContext, requestContext } from '../../env/index.ts';
import type { FamilyChange, Service } from '../../service/index.ts';
import { jsonLine } from '../output/output.ts';
import { withProgress } from '../output/progress.ts';
import type { Terminal } from '../output/terminal.ts';

interface TargetOptions {
  readonly dir?: string;
  readonly address?: string;
  readonly project: string;
  readonly instance: string;
  readonly json?: boolean;
  readonly progress?: boolean;
  readonly tls?: boolean;
  readonly tlsCa?: string;
  readonly tlsKey?: string;
  readonly tlsCert?: string;
  readonly tokenFile?: string;
  readonly backupStore?: string;
}

type Tls = {
  readonly caFile: string | undefined;
  readonly keyFile: string | undefined;
  readonly certFile: string | undefined;
};

type Place =
  | { readonly directory: string }
  | {
      readonly directory: undefined;
      readonly address: string;
      readonly access: { readonly tls: Tls | undefined; readonly token: string | undefined };
    };

/** The surroundings of a command: its options, its output, and its database. */
export class Session {
  readonly options: TargetOptions;
  readonly terminal: Terminal;
  /** True when --project or --instance was given. */
  readonly namesInstance: boolean;

  constructor(command: Command, terminal: Terminal) {
    this.options = command.optsWithGlobals<TargetOptions>();
    this.terminal = terminal;
    this.namesInstance = ['project', 'instance'].some(
      (name) => command.getOptionValueSourceWithGlobals(name) === 'cli',
    );
  }

  get json(): boolean {
    return this.options.json === true;
  }

  /** The part of a full name before the table's id. */
  get prefix(): string {
    const { project, instance } = this.options;
    return `projects/${project}/instances/${instance}/tables/`;
  }

  /** The full name of a table's id. Full names are returned unchanged. */
  tableName(id: string): string {
    return id.includes('/') ? id : `${this.prefix}${id}`;
  }

  /** The full name of an instance's id, by default that of the command. Full names are returned unchanged. */
  instanceName(id = this.options.instance): string {
    return id.includes('/') ? id : `projects/${this.options.project}/instances/${id}`;
  }

  /** Tells of something odd that is no error. */
  warn(message: string): void {
    this.terminal.complain(this.json ? jsonLine({ warning: { message } }) : `edubba: warning: ${message}\n`);
  }

  /** Long work: see progress.ts. */
  withProgress<T>(describe: () => string, work: () => Promise<T>): Promise<T> {
    return withProgress(this.terminal, this.options, describe, work);
  }

  withTable<T>(id: string, work: (table: Table) => Promise<T>): Promise<T> {
    return this.withDatabase((database) => work(database.table(this.tableName(id))));
  }

  /** `create`: a directory without a database gets one. */
  async withDatabase<T>(work: (database: Database) => Promise<T>, { create = false } = {}): Promise<T> {
    const { project, instance } = this.options;
    const place = await this.#place(create);
    return use(
      place.directory === undefined
        ? await connect(place.address, { project, instance, ...place.access })
        : await open(place.directory),
      work,
    );
  }

  /** For what the library has no word for. `create` as above. */
  async withService<T>(
    work: (service: Service, context: RequestContext) => Promise<T>,
    { create = false } = {},
  ): Promise<T> {
    const place = await this.#place(create);
    const { service, env, close } =
      place.directory === undefined
        ? await connectService(place.address, place.access)
        : await openDatabase({ ...place, settings: this.#settings });
    const context = requestContext({ budget: env.requestBudget, principal: 'edubba' });
    return use({ close }, () => work(service, context).finally(() => context.reservation.release()));
  }

  async changeFamilies(id: string, changes: readonly FamilyChange[]): Promise<void> {
    await this.withService((service, context) => service.modifyFamilies(context, this.tableName(id), changes));
  }

  /** For a database that this process opens. */
  get #settings(): { readonly backupStore: string | undefined } {
    const { backupStore = this.terminal.environment['EDUBBA_BACKUP_STORE'] } = this.options;
    return { backupStore: backupStore || undefined };
  }

  async #place(create: boolean): Promise<Place> {
    const { dir, address, backupStore } = this.options;
    if (dir !== undefined && address !== undefined)
      throw invalidArgument(`give either --dir (${dir}) or --address (${address}), not both`);
    if (dir !== undefined) {
      await checkDirectory(dir, create);
      return { directory: dir };
    }
    const where = address ?? this.terminal.environment['BIGTABLE_EMULATOR_HOST'];
    if (where === undefined || where === '') {
      throw invalidArgument(
        'say where the data is: --dir DIR, or --address HOST:PORT of a server (or BIGTABLE_EMULATOR_HOST)',
      );
    }
    if (backupStore !== undefined)
      throw invalidArgument('--backup-store is for --dir: a server has a setting of its own');
    await this.#warnOfFiles();
    return { directory: undefined, address: where, access: { tls: this.#tls, token: await this.#token() } };
  }

  /** A file for TLS turns TLS on. */
  get #tls(): Tls | undefined {
    const { tls, tlsCa: caFile, tlsKey: keyFile, tlsCert: certFile } = this.options;
    return tls || caFile !== undefined || keyFile !== undefined || certFile !== undefined
      ? { caFile, keyFile, certFile }
      : undefined;
  }

  /** Tells of secrets that others than their owner can read. */
  async #warnOfFiles(): Promise<void> {
    for (const file of [this.options.tokenFile, this.options.tlsKey]) {
      const mode = file === undefined ? undefined : await modeForOthers(file, 'secret');
      if (mode !== undefined)
        this.warn(`${file} is secret and can be read by other users of this machine (mode ${mode}): chmod 600 ${file}`);
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

async function use<T, D extends { close(): Promise<void> }>(
  database: D,
  work: (database: D) => Promise<T>,
): Promise<T> {
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

/** A mistyped name must not make a database. */
async function checkDirectory(dir: string, create: boolean): Promise<void> {
  if (dir === ':memory:')
    throw invalidArgument('a database in memory would end with this command: give --dir a directory');
  if (!create && (await findDirectory(dir)) === undefined) {
    throw notFound(`no database found in ${dir}; createtable and serve create one`);
  }
}
