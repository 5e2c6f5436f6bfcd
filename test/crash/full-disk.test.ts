/** The disk is full from each single operation on that needs room, for a while. */
import { BigtableError, Code } from '../../src/embedded/index.ts';
import type { FileOperation } from '../../src/env/index.ts';
import { atEveryOperation } from './every-error.ts';

const GROWS: ReadonlySet<FileOperation> = new Set(['create', 'appendFile', 'closeFile', 'openLog', 'appendLog']);

atEveryOperation({
  name: 'a full disk',
  lastsMs: 4000,
  fail: (operation, path) => (GROWS.has(operation) ? new BigtableError(Code.RESOURCE_EXHAUSTED, `${operation} ${path}: ENOSPC: no space left on device`) : undefined),
});
