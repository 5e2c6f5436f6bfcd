/**
 * The error for a command line that is not understood: an argument that is unknown, lacks its value or has the wrong
 * form. The exit status is 2 (docs/decisions/0031-command-line.md).
 */
import { BigtableError, Code } from '../../base/index.ts';

export class UsageError extends BigtableError {
  constructor(message: string) {
    super(Code.INVALID_ARGUMENT, message);
  }
}
