/** Fails in each of the ways a task can without ending its thread. */
import { BigtableError, Code, CorruptionError } from '../../../src/base/index.ts';

export function run({
  kind,
}: {
  kind: 'bigtable' | 'corruption' | 'type-error' | 'text' | 'uncloneable answer';
}): unknown {
  switch (kind) {
    case 'bigtable':
      throw new BigtableError(Code.RESOURCE_EXHAUSTED, 'no room', { retry: true, details: { limitBytes: 5 } });
    case 'corruption':
      throw new CorruptionError('a/b.sst', 17, 'bad magic');
    case 'type-error':
      throw new TypeError('not a thing');
    case 'text':
      throw 'just text';
    case 'uncloneable answer':
      return () => kind;
  }
}
