/** The contract of file systems, on slots: two machines over one store, which is reached well or badly. */
import { fileSystemContract } from '../../../test/contracts/file-system-contract.ts';
import { machinesInTurn } from '../../../test/contracts/lost-answers.ts';
import { eachCallOnce, type Fate, unreliableSlots } from '../../../test/contracts/unreliable-slots.ts';
import { quickClock } from '../../../test/simulated-time.ts';
import { MemoryFileSystem } from '../memory/memory-file-system.ts';
import { MemorySlotStore } from '../memory/memory-slot-store.ts';
import { SeededRandom } from '../memory/seeded-random.ts';
import type { FileSystem } from '../seams/file-system.ts';
import { withSlotLogs } from './slot-logs.ts';

function contractWith(title: string, fate: Fate, pageSize?: number): void {
  fileSystemContract(title, async () => {
    const files = new MemoryFileSystem();
    const slots = new MemorySlotStore(pageSize ? { pageSize } : {});
    const once = eachCallOnce(fate);
    // a creation that is refused after an attempt of unknown outcome is not known to be refused
    const isKnown = (): boolean => fate === 'unanswered' || slots.freeBytes === Number.POSITIVE_INFINITY;
    const { store, landAll } = unreliableSlots(slots, (...call) => (isKnown() ? once(...call) : 'answered'));
    const random = new SeededRandom(5);
    const machine = (): FileSystem => {
      const one = withSlotLogs(files, store, { clock: quickClock(), random });
      const { deleteLog } = one;
      // a path is free once nothing of its former log is under way
      one.deleteLog = async (path) => {
        await deleteLog(path);
        await landAll();
        await deleteLog(path);
        await landAll();
      };
      return one;
    };
    return {
      fileSystem: machinesInTurn([machine(), machine()]),
      reopen: async () => withSlotLogs(files, store, { clock: quickClock(), random }),
      setFreeBytes: (bytes) => {
        files.freeBytes = bytes;
        slots.freeBytes = bytes;
      },
    };
  });
}

contractWith('slots', 'answered');
contractWith('slots, two in a page', 'answered', 2);
contractWith('slots, every call applied and its answer lost', 'unanswered');
contractWith('slots, every call fails and is not applied', 'failed');
contractWith('slots, every call lands late', 'late');
