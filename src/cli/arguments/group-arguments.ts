/**
 * Locality groups as the command line has them: `GROUP=FAMILY,FAMILY:option=value:option=value`. What the words mean is
 * checked where every door's groups are; here only that they can be read.
 */
import { ownOf } from '../../base/index.ts';
import type { GroupCompression, GroupLayout } from '../../embedded/index.ts';
import { notKnown, positiveNumber, truth } from './arguments.ts';
import { UsageError } from '../output/usage-error.ts';

type Group = GroupLayout[string];
type Compression = GroupCompression;

const OPTIONS: Readonly<Record<string, (value: string) => Group>> = {
  blocksize: (value) => ({ blockSizeBytes: positiveNumber(value, 'blocksize') }),
  compression: (value) => ({ compression: compressionOf(value) }),
  bloom: (value) => ({ bloomFilter: value as NonNullable<Group['bloomFilter']> }),
  inmemory: (value) => ({ inMemory: truth(value, 'inmemory') }),
};

export function parseGroups(words: readonly string[]): GroupLayout {
  const groups = new Map<string, Group>();
  for (const word of words) {
    const [first = '', ...options] = word.split(':');
    const at = first.indexOf('=');
    if (at <= 0) throw new UsageError(`"${word}" must be written GROUP=FAMILY,… or GROUP=FAMILY,…:option=value`);
    const name = first.slice(0, at);
    if (groups.has(name)) throw new UsageError(`locality group "${name}" is given twice`);
    const families = first
      .slice(at + 1)
      .split(',')
      .filter((family) => family !== '');
    groups.set(name, Object.assign({ families }, ...options.map(optionOf)));
  }
  return Object.fromEntries(groups);
}

function optionOf(word: string): Group {
  const at = word.indexOf('=');
  const name = at < 0 ? word : word.slice(0, at);
  const read = ownOf(OPTIONS, name);
  if (at < 0 || read === undefined) throw notKnown('option', word, Object.keys(OPTIONS));
  return read(word.slice(at + 1));
}

/** KIND or KIND/LEVEL. */
function compressionOf(text: string): Compression {
  const [kind = '', level] = text.split('/');
  return {
    kind: kind as Compression['kind'],
    ...(level !== undefined && { level: positiveNumber(level, 'the level of a compression') }),
  };
}
