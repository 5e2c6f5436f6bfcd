/** Locality groups in the library's words. What the options mean is checked where every door's groups are. */
import { describeValue, invalidArgument, isObjectOfNames } from '../../base/index.ts';
import {
  type GroupCompression,
  type GroupLayout as ModelLayout,
  LIMITS,
  type LocalityGroup,
} from '../../model/index.ts';
import { checkGroupLayout } from '../../service/index.ts';
import { listOf, textOf } from '../values/input.ts';

/** Tuning of a locality group (paper section 6), and the families that lie in it. */
export interface GroupOptions extends Omit<LocalityGroup, 'compression'> {
  /**
   * How blocks are compressed: `'zstd'` is short for `{ kind: 'zstd' }`. Default: lz4, which leaves blocks alone that
   * do not shrink.
   */
  readonly compression?: GroupCompression | GroupCompression['kind'];
  readonly families?: readonly string[];
}

/** A table's locality groups by name. Families named nowhere lie in `default`. */
export type GroupLayout = Readonly<Record<string, GroupOptions>>;

export function layoutOf(groups: GroupLayout): ModelLayout {
  if (!isObjectOfNames(groups)) {
    throw invalidArgument(
      `groups must be an object with the options of each locality group by its name, not ${describeValue(groups)}`,
    );
  }
  return Object.fromEntries(Object.entries(groups).map(([name, options]) => [name, groupOf(name, options)]));
}

/** Checks the layout as the service does, before a request is sent. */
export function checkedLayout(layout: ModelLayout): ModelLayout {
  checkGroupLayout(layout, LIMITS.default);
  return layout;
}

function groupOf(name: string, options: GroupOptions): ModelLayout[string] {
  const what = `locality group "${name}"`;
  if (!isObjectOfNames(options))
    throw invalidArgument(`${what} must be an object of options, not ${describeValue(options)}`);
  const { compression, families, ...tuning } = options;
  return {
    ...tuning,
    ...(families !== undefined && {
      families: listOf(families, `${what}: families`).map((family) => textOf(family, `${what}: a family`)),
    }),
    ...(compression !== undefined && {
      compression: typeof compression === 'string' ? { kind: compression } : compression,
    }),
  };
}
