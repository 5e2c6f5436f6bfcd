/**
 * What a command works on: a directory, opened in this process, or a server at an address. The address may come from --address or from
 * BIGTABLE_EMULATOR_HOST, which the official clients read too.
 */
import { invalidArgument } from '../base/index.ts';
import { connect } from '../boot/index.ts';
import { type Database, open, overService } from '../embedded/index.ts';

export interface TargetOptions {
  readonly dir?: string;
  readonly address?: string;
  readonly project: string;
  readonly instance: string;
  readonly json?: boolean;
}

export async function withDatabase<T>(options: TargetOptions, work: (database: Database) => Promise<T>): Promise<T> {
  const database = await openTarget(options);
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

async function openTarget({ dir, address }: TargetOptions): Promise<Database> {
  if (dir !== undefined && address !== undefined) throw invalidArgument('give either --dir or --address');
  if (dir !== undefined) return open(dir);
  const where = address ?? process.env['BIGTABLE_EMULATOR_HOST'];
  if (where === undefined) throw invalidArgument('say where the data is: --dir DIR, or --address HOST:PORT of a server (or BIGTABLE_EMULATOR_HOST)');
  const { service, env, close } = await connect(where);
  return overService(service, env.requestBudget, close);
}

/** Table ids as the user gives them, in full. Full names pass. */
export function tableName({ project, instance }: TargetOptions, id: string): string {
  return id.includes('/') ? id : `${tablePrefix({ project, instance })}${id}`;
}

export function tablePrefix({ project, instance }: Pick<TargetOptions, 'project' | 'instance'>): string {
  return `projects/${project}/instances/${instance}/tables/`;
}
