/** The contract of file systems, in a directory that two machines share, with a bad way to the files. */
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { fileSystemContract } from '../../../test/contracts/file-system-contract.ts';
import { filesSentAgain, machinesInTurn } from '../../../test/contracts/lost-answers.ts';
import { eachCallOnce, type Fate, unreliableSlots } from '../../../test/contracts/unreliable-slots.ts';
import { quickClock } from '../../../test/simulated-time.ts';
import { type FileSystem, SeededRandom, withSlotLogs } from '../../env/index.ts';
import { errno, smallDisk, withoutSyncs } from '../fixtures.ts';
import { systemClock } from '../machine/system-clock.ts';
import { systemRandom } from '../machine/system-random.ts';
import type { Syscalls } from '../posix/posix-syscalls.ts';
import { openSharedDirectory, type SharedDirectoryOptions } from './shared-directory.ts';
import type { SharedStore } from './shared-store.ts';

/** The contract makes no more appends of one reservation. */
const OPTIONS = { clock: systemClock, random: systemRandom, maxReservedAppends: 41 };

// timers of the system's clock do not keep the process alive
const alive = setInterval(() => undefined, 1000);
after(() => clearInterval(alive));

type Sees = (directory: SharedStore) => { readonly fileSystem: FileSystem; readonly landAll: () => Promise<void> };

const reliably: Sees = ({ fileSystem }) => ({ fileSystem, landAll: async () => undefined });

/** The slots as they are reached badly, the files with each call sent again. */
function badly(fate: Fate, isFull: () => boolean): Sees {
  const once = eachCallOnce(fate);
  const random = new SeededRandom(5);
  return ({ fileSystem, slots }) => {
    const isKnown = (): boolean => fate === 'unanswered' || !isFull();
    const { store, landAll } = unreliableSlots(slots, (...call) => (isKnown() ? once(...call) : 'answered'));
    const seen = withSlotLogs(fileSystem, store, { clock: quickClock(), random });
    return { fileSystem: filesSentAgain(seen), landAll };
  };
}

function contractWith(
  title: string,
  seesAs: (isFull: () => boolean) => Sees,
  options: Partial<SharedDirectoryOptions> = {},
  worsened: (syscalls: Syscalls) => Syscalls = (syscalls) => syscalls,
): void {
  fileSystemContract(title, async () => {
    const directory = fs.mkdtempSync(join(tmpdir(), 'edubba-shared-'));
    const disk = smallDisk();
    const syscalls = worsened(withoutSyncs(disk.syscalls));
    const sees = seesAs(() => disk.freeBytes !== Number.POSITIVE_INFINITY);
    const opened: SharedStore[] = [];
    const landings: (() => Promise<void>)[] = [];
    const machine = async (): Promise<FileSystem> => {
      const one = await openSharedDirectory(directory, { ...OPTIONS, ...options, syscalls });
      opened.push(one);
      const { fileSystem, landAll } = sees(one);
      landings.push(landAll);
      // a path is free once nothing of its former log is under way
      const deleteLog = async (path: string): Promise<void> => {
        for (let i = 0; i < 2; i++) {
          await fileSystem.deleteLog(path);
          for (const land of landings) await land();
        }
      };
      return { ...fileSystem, deleteLog };
    };
    const machines = async (): Promise<FileSystem> => machinesInTurn([await machine(), await machine()]);
    return {
      fileSystem: await machines(),
      reopen: machines,
      setFreeBytes: (bytes) => (disk.freeBytes = bytes),
      close: async () => {
        for (const one of opened) await one.close();
        fs.rmSync(directory, { recursive: true });
      },
    };
  });
}

/** As a file server whose first answer to each change of a name is lost: the client hears that to the repetition. */
function forgettingAnswers(syscalls: Syscalls): Syscalls {
  return {
    ...syscalls,
    link: async (from, to) => {
      await syscalls.link(from, to);
      throw errno('EEXIST');
    },
    unlink: async (path) => {
      await syscalls.unlink(path);
      throw errno('ENOENT');
    },
    mkdir: async (path) => {
      await syscalls.mkdir(path);
      throw errno('EEXIST');
    },
    rmdir: async (path) => {
      await syscalls.rmdir(path);
      throw errno('ENOENT');
    },
  };
}

/** The long form takes some minutes more. */
const isLong = process.env['EDUBBA_EVERY_FATE'] !== undefined;
for (const fate of isLong ? (['unanswered', 'late'] as const) : ['unanswered' as const])
  contractWith(`shared directory, two in a page, every call ${fate}`, (full) => badly(fate, full), { pageSize: 2 });
if (isLong) {
  contractWith('shared directory, two machines', () => reliably);
  contractWith('shared directory, answers of the file server lost', () => reliably, {}, forgettingAnswers);
}
