/** Families as cbt writes them: NAME, NAME:POLICY or NAME:POLICY:TYPE. */
import { ownOf } from '../../base/index.ts';
import type { FamilySchema, ValueType } from '../../model/index.ts';
import { parseGcPolicy } from './gc-policy.ts';
import { UsageError } from '../output/usage-error.ts';

/** google.bigtable.admin.v2.Type, serialized: a string in UTF-8. */
const STRING_TYPE = 'EgQKAhIA';

const TYPES: Readonly<Record<string, ValueType>> = {
  intsum: { aggregate: { kind: 'sum', input: 'int64' } },
  intmin: { aggregate: { kind: 'min', input: 'int64' } },
  intmax: { aggregate: { kind: 'max', input: 'int64' } },
  inthll: { aggregate: { kind: 'hll', input: 'int64' } },
  hll: { aggregate: { kind: 'hll', input: 'bytes' } },
};

export const FAMILY_HELP = `
  POLICY drops versions of a column:
    maxversions=N    all but the newest N
    maxage=10d       those that are older; units: ms, s, m, h, d
    A or B, A || B   those that either rule drops
    A and B, A && B  those that both rules drop; parentheses group, "and" binds closer
    never            none

  TYPE makes an aggregate, whose cells are added to (addtocell) and never overwritten:
    intsum, intmin, intmax   the sum, least or greatest of whole numbers
    inthll, hll              a sketch that counts distinct whole numbers, or texts`;

export interface FamilyArgument {
  readonly name: string;
  /** The given type; undefined if none was given. */
  readonly policy: string | undefined;
  readonly type: string | undefined;
}

/** cbt's help writes FAMILY:gcpolicy=POLICY, its examples FAMILY:POLICY. */
export function familyArgument(word: string): FamilyArgument {
  const [name = '', policy, type, ...rest] = word.split(':');
  if (name === '') throw new UsageError(`"${word}" names no family`);
  if (rest.length > 0) throw new UsageError(`"${word}" must be written FAMILY, FAMILY:POLICY or FAMILY:POLICY:TYPE`);
  return { name, policy: policy?.replace(/^gcpolicy=/, ''), type };
}

/** `defaultPolicy`: where none was given. */
export function familySchema({ name, policy, type }: FamilyArgument, defaultPolicy: string): FamilySchema {
  const gcRule = parseGcPolicy(policy ?? defaultPolicy);
  const valueType = type === undefined ? undefined : ownOf(TYPES, type);
  if (type !== undefined && valueType === undefined) {
    throw new UsageError(`family "${name}": unknown type "${type}"; known: ${Object.keys(TYPES).join(', ')}`);
  }
  return { name, ...(gcRule && { gcRule }), ...(valueType && { valueType }) };
}

/** The type that setvaluetype sets, by cbt's name. */
export function settableType(name: string): ValueType {
  if (name === 'stringutf8bytes') return { encoded: STRING_TYPE };
  throw new UsageError(
    `the type can only be set to stringutf8bytes, not to "${name}"; aggregates are made by createtable and createfamily`,
  );
}

/** The name of a type in lists; '' for plain bytes. */
export function typeName(type: ValueType | undefined): string {
  if (type === undefined) return '';
  if (type.aggregate !== undefined) {
    const { kind, input } = type.aggregate;
    return input === 'int64' ? `int${kind}` : kind;
  }
  if (type.encoded === undefined || type.encoded === '') return '';
  return type.encoded === STRING_TYPE ? 'stringutf8bytes' : 'other';
}
