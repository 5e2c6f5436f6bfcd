/** Each single operation on files fails once. */
import { BigtableError, Code } from '../../src/embedded/index.ts';
import { atEveryOperation } from './every-error.ts';

atEveryOperation({
  name: 'an I/O error',
  lastsMs: 0,
  fail: (operation, path) => new BigtableError(Code.UNAVAILABLE, `${operation} ${path}: EIO: i/o error`),
});
