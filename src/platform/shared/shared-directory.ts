/**
 * A directory that many processes and machines share: on NFS, CephFS, or a local disk for trying. It has no owner and
 * no lock. Format: docs/formats/shared-store.md, reasons: docs/decisions/0086-shared-directory.md.
 *
 * Invariants: the promises of file-system.ts, for all machines together; a directory with other content is refused and
 * left unchanged.
 */
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { BigtableError, Code } from '../../base/index.ts';
import { type Clock, proveStore, type Random, type SlotLogsOptions, withSlotLogs } from '../../env/index.ts';
import { FORMAT_NAME, formatText, parseFormat } from '../directory/format-file.ts';
import { makeDirectory } from '../directory/make-directory.ts';
import { errnoOf, systemCall, systemError } from '../posix/posix-errors.ts';
import { nodeSyscalls, type Syscalls } from '../posix/posix-syscalls.ts';
import { mountProblem } from './nfs-mount.ts';
import { SharedFiles } from './shared-files.ts';
import { OPEN_NEW, SharedNames } from './shared-names.ts';
import { SharedSlots } from './shared-slots.ts';
import type { SharedStore } from './shared-store.ts';

export interface SharedDirectoryOptions extends Omit<SlotLogsOptions, 'clock' | 'random'> {
  readonly clock: Clock;
  readonly random: Random;
  readonly syscalls?: Syscalls;
  /** Write-once files that are kept open for reads. Default 256. */
  readonly maxOpenFiles?: number;
  /** Slots or logs in a page of a list. Default 1000. */
  readonly pageSize?: number;
  /**
   * Appends that one reservation of a log is divided into at most: each takes whole blocks, which are reserved for it.
   * Default 16,384: all that fit into 2 MiB.
   */
  readonly maxReservedAppends?: number;
  /** False: this process has proven the directory already. Default: true. */
  readonly selfTest?: boolean;
}

const MAX_OPEN_FILES = 256;
const PAGE_SIZE = 1000;
/** To open and read a file on NFS takes a millisecond or two: 64 MiB of short slots are 16,384. */
const SLOT_COST_BYTES = 4 * 1024;
const MAX_RESERVED_APPENDS = 16_384;
/** Names that a foreign directory may have: those that another machine makes before the format file. */
const HARMLESS = new Set(['files', 'slots', 'tmp', 'room', 'lost+found', '.snapshot', '.snap']);

/**
 * Opens the directory, which is made where there is none, and proves that it keeps the promises of a store that many
 * machines share. FAILED_PRECONDITION where it does not, or holds something else.
 */
export async function openSharedDirectory(path: string, options: SharedDirectoryOptions): Promise<SharedStore> {
  const { syscalls = nodeSyscalls, clock, random } = options;
  const directory = resolve(path);
  await systemCall(`making ${directory}`, makeDirectory(directory));
  await checkMount(directory);
  const names = new SharedNames(directory, syscalls);
  const identity = await systemCall(`opening ${directory}`, checkFormat(names, syscalls, random));
  const files = new SharedFiles(names, syscalls, options.maxOpenFiles ?? MAX_OPEN_FILES);
  const slots = new SharedSlots({
    names,
    syscalls,
    clock,
    pageSize: options.pageSize ?? PAGE_SIZE,
    maxReservedSlots: options.maxReservedAppends ?? MAX_RESERVED_APPENDS,
  });
  if (options.selfTest !== false) await proveStore({ files, slots, where: directory, clock, random });
  return {
    fileSystem: withSlotLogs(files, slots, { slotCostBytes: SLOT_COST_BYTES, ...options }),
    slots,
    identity,
    close: async () => files.close(),
  };
}

async function checkMount(directory: string): Promise<void> {
  // only Linux has it
  const mountInfo = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  const problem = mountProblem(mountInfo, directory);
  if (problem !== undefined) throw new BigtableError(Code.FAILED_PRECONDITION, problem);
}

/** The identity in the format file, which is made where the directory is new. */
async function checkFormat(names: SharedNames, syscalls: Syscalls, random: Random): Promise<string> {
  const file = join(names.root, FORMAT_NAME);
  const found = await readFormat(file);
  if (found !== undefined) {
    await names.prepare();
    return found;
  }
  const strange = (await syscalls.readdir(names.root)).find(({ name }) => !HARMLESS.has(name) && name !== FORMAT_NAME);
  if (strange) {
    const what = `it has no file ${FORMAT_NAME} but holds ${JSON.stringify(strange.name)}`;
    throw new BigtableError(Code.FAILED_PRECONDITION, `${names.root} is not an Edubba store: ${what}`);
  }
  await names.prepare();
  const temporary = names.temporaryPath();
  const fd = await syscalls.open(temporary, OPEN_NEW);
  try {
    await syscalls.write(fd, [Buffer.from(formatText('store', random.uniqueName()), 'latin1')], 0);
    await syscalls.sync(fd);
  } finally {
    await syscalls.close(fd);
  }
  // of several that make the directory one gives it its identity
  await names.publish(temporary, file).catch((error: unknown) => {
    if (errnoOf(error) !== 'EEXIST') throw error;
  });
  const made = await readFormat(file);
  if (made === undefined) throw new BigtableError(Code.UNAVAILABLE, `${file} was removed while it was made`);
  return made;
}

async function readFormat(file: string): Promise<string | undefined> {
  try {
    return parseFormat(await readFile(file, 'latin1'), file, 'store');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw systemError(error, file);
  }
}
