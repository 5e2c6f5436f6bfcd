/**
 * The disk is full, or the process has no descriptor left, from each single operation on that needs one, for a while.
 */
import { BigtableError, Code } from '../../src/embedded/index.ts';
import type { FileOperation } from '../../src/env/index.ts';
import { atEveryOperation, type Trouble } from './every-error.ts';

const GROWS: ReadonlySet<FileOperation> = new Set([
  'create',
  'appendFile',
  'closeFile',
  'openLog',
  'reserveLog',
  'appendLog',
]);
/** An append begins a new segment now and then. */
const OPENS: ReadonlySet<FileOperation> = new Set([
  'create',
  'closeFile',
  'size',
  'read',
  'list',
  'openLog',
  'reserveLog',
  'appendLog',
  'fence',
  'readLog',
  'listLogs',
  'deleteLog',
]);

const lack = (operations: ReadonlySet<FileOperation>, words: string): Pick<Trouble, 'fail' | 'lastsMs'> => ({
  lastsMs: 4000,
  fail: (operation, path) =>
    operations.has(operation)
      ? new BigtableError(Code.RESOURCE_EXHAUSTED, `${operation} ${path}: ${words}`)
      : undefined,
});

atEveryOperation({ name: 'a full disk', ...lack(GROWS, 'ENOSPC: no space left on device') });
atEveryOperation({
  name: 'a full disk under buffered writes',
  ...lack(GROWS, 'ENOSPC: no space left on device'),
  settings: { durability: 'buffered' },
});
// nearly every operation needs a descriptor, a few need room
atEveryOperation({ name: 'a lack of descriptors', ...lack(OPENS, 'EMFILE: too many open files'), strideTimes: 3 });
