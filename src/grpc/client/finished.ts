/** Operations that a server has finished when it answers, as Edubba's servers have. */
import { BigtableError, Code } from '../../base/index.ts';
import type { Operation } from '../generated/google/longrunning/operations_pb.ts';
import { errorOfStatus } from '../rpc/error-of-status.ts';

/** Throws the error of the operation, and UNAVAILABLE where it goes on. `name`: what it changes. */
export function checkFinished({ done, result }: Operation, name: string): void {
  if (result.case === 'error') throw errorOfStatus(result.value.code, result.value.message) ?? unfinished(name);
  if (!done) throw unfinished(name);
}

function unfinished(name: string): BigtableError {
  return new BigtableError(Code.UNAVAILABLE, `the server has not finished changing ${name}`);
}
