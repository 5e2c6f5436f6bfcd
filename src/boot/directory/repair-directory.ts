/**
 * Rebuilds the METADATA of the database in a directory, there or in a new directory. Holds the lock of the directory
 * that it writes.
 */
import { BigtableError, Code, toBigtableError } from '../../base/index.ts';
import { carryOutRepair, checkDatabase, planRepair, type RepairPlan, type RepairResult } from '../../inspect/index.ts';
import {
  findDirectory,
  nativeCodecs,
  openDirectory,
  openLocalLockService,
  systemClock,
  systemRandom,
} from '../../platform/index.ts';
import { openForInspection } from './inspection.ts';

export interface RepairReport extends Omit<RepairPlan, 'tables' | 'lockFiles' | 'metadataFiles' | 'metadataEpoch'> {
  /** The directory of the repaired database. */
  readonly directory: string;
  readonly tables: RepairResult['tables'];
}

/**
 * `writeTo`: a directory that is made, or is empty; without it the repair is made in place. FAILED_PRECONDITION where
 * there is nothing to repair; in place also where something cannot be saved, since the next sweep would remove its
 * remains, and where a process has the directory open.
 */
export async function repairDirectory(directory: string, writeTo?: string): Promise<RepairReport> {
  const source = await openForInspection(directory);
  try {
    if (writeTo !== undefined) {
      if ((await findDirectory(writeTo)) !== undefined)
        throw new BigtableError(Code.ALREADY_EXISTS, `${writeTo} holds a database already: name a new directory`);
      const plan = await planRepair(source);
      return await write(source, plan, writeTo, true);
    }
    const { findings } = await checkDatabase(source);
    if (findings.length === 0) throw new BigtableError(Code.FAILED_PRECONDITION, `nothing is damaged in ${directory}`);
    const plan = await planRepair(source);
    const lost = plan.unsaved.filter((what) => !what.startsWith('a file of the lock service'));
    if (lost.length > 0) {
      const message = `not everything can be saved, and in place the next sweep would remove the rest; write the repaired database to a new directory. Unsaved: ${lost.join('; ')}`;
      throw new BigtableError(Code.FAILED_PRECONDITION, message);
    }
    return await write(source, plan, directory, false);
  } finally {
    await source.close();
  }
}

async function write(
  components: Parameters<typeof planRepair>[0],
  plan: RepairPlan,
  directory: string,
  isElsewhere: boolean,
): Promise<RepairReport> {
  const { fileSystem, release } = await openDirectory(directory, {
    checksum: nativeCodecs().checksum,
    clock: systemClock,
  });
  try {
    // the lock service refuses to open over damage; the readable files are in the plan
    if (!isElsewhere) for (const { name } of plan.lockFiles.damages) await fileSystem.delete(name);
    const lockService = await openLocalLockService(fileSystem);
    const uniqueName = (): string => systemRandom.uniqueName();
    const result = await carryOutRepair(components, plan, { fileSystem, lockService, isElsewhere, uniqueName });
    const { unsaved, notes, superfluous } = plan;
    return { directory, tables: result.tables, unsaved: [...unsaved, ...result.unsaved], notes, superfluous };
  } catch (error) {
    throw toBigtableError(error);
  } finally {
    await release();
  }
}
