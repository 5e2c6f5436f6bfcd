/** The options of `createTable` and `openTable`, converted to the model's types. */
import { type ByteString, checkOptions, describeValue, invalidArgument, type OptionTable } from '../../base/index.ts';
import type { Granularity } from '../../model/index.ts';
import type { NewTable } from '../../service/index.ts';
import { CALL_OPTIONS, type CallOptions } from '../calls/call-options.ts';
import { type AskedFamily, askedFamilies, type FamilyOptions, groupsOfTable } from './families.ts';
import type { GroupLayout } from './groups.ts';
import { type Bytes, keyOf, listOf } from '../values/input.ts';

export interface TableOptions extends CallOptions {
  readonly families?: Readonly<Record<string, FamilyOptions>>;
  /** Rows at which the table is split into tablets from the start. */
  readonly splits?: readonly Bytes[];
  /** The unit of timestamps. Default: micros. */
  readonly granularity?: Granularity;
  /**
   * Locality groups: families that are read together, and how their files are written. Families named in none lie in
   * `default`.
   */
  readonly groups?: GroupLayout;
}

const TABLE_OPTIONS = {
  families: 'bound',
  splits: 'free',
  granularity: 'free',
  groups: 'free',
  ...CALL_OPTIONS,
} satisfies OptionTable<TableOptions>;

const GRANULARITIES: readonly Granularity[] = ['micros', 'millis'];

export interface AskedTable {
  readonly table: NewTable;
  readonly families: readonly AskedFamily[];
  /** Undefined where the options leave it out. */
  readonly granularity: Granularity | undefined;
}

/** INVALID_ARGUMENT for options that are not known or of the wrong form; `call` is who takes them. */
export function askedTable(name: string, options: TableOptions, call: string): AskedTable {
  checkOptions(options, TABLE_OPTIONS, call);
  const asked = askedFamilies(options.families ?? {});
  const families = asked.map(({ schema }) => schema);
  const splits: ByteString[] = listOf(options.splits ?? [], 'splits').map((row) => keyOf(row, 'a split'));
  const groups = groupsOfTable(options.families ?? {}, options.groups);
  const { granularity } = options;
  if (granularity !== undefined && !GRANULARITIES.includes(granularity))
    throw invalidArgument(`granularity must be one of ${GRANULARITIES.join(', ')}, not ${describeValue(granularity)}`);
  return {
    table: { name, families, splits, granularity: granularity ?? 'micros', deletionProtection: false, groups },
    families: asked,
    granularity,
  };
}
