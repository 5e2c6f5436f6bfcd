/** Field masks of updates (google.protobuf.FieldMask): which fields of a message replace those of the present one. */
import { clone, type DescMessage, type MessageShape } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import type { FieldMask } from '@bufbuild/protobuf/wkt';
import { invalidArgument, quote } from '../../base/index.ts';

/**
 * The present message, with those of its fields that the mask names replaced by the given ones: a field that the given
 * message lacks is cleared. A path names one of the `changeable` fields, or a field inside one. `onEmpty`: the paths of
 * a mask that names none.
 *
 * INVALID_ARGUMENT for any other path, and for a mask without paths where `onEmpty` has none.
 */
export function applyMask<Desc extends DescMessage>(
  desc: Desc,
  { present, given, mask }: MaskedUpdate<Desc>,
  changeable: readonly string[],
  onEmpty: readonly string[] = [],
): MessageShape<Desc> {
  const paths = mask === undefined || mask.paths.length === 0 ? onEmpty : mask.paths;
  if (paths.length === 0) throw wrongMask("A non-empty 'update_mask' must be specified");
  const changed = clone(desc, present);
  for (const path of new Set(paths)) {
    const [first = '', ...rest] = path.split('.');
    if (!changeable.includes(first)) throw unchangeable(desc, path, changeable);
    replace(reflect(desc, changed), reflect(desc, given), [first, ...rest], path);
  }
  return changed;
}

export interface MaskedUpdate<Desc extends DescMessage> {
  readonly present: MessageShape<Desc>;
  readonly given: MessageShape<Desc>;
  readonly mask: FieldMask | undefined;
}

function replace(present: ReflectMessage, given: ReflectMessage, parts: readonly string[], path: string): void {
  const [name, ...rest] = parts;
  const field = present.fields.find((each) => each.name === name);
  if (field === undefined) throw wrongMask(`update_mask: there is no field ${quote(path, 200)}`);
  if (rest.length === 0) {
    if (given.isSet(field)) present.set(field, given.get(field));
    else present.clear(field);
    return;
  }
  if (field.fieldKind !== 'message')
    throw wrongMask(`update_mask: ${quote(path, 200)} names a part of ${name}, which has none`);
  const inner = present.isSet(field) ? present.get(field) : reflect(field.message);
  const from = given.isSet(field) ? given.get(field) : reflect(field.message);
  replace(inner, from, rest, path);
  present.set(field, inner);
}

function unchangeable(desc: DescMessage, path: string, changeable: readonly string[]) {
  const exists = desc.fields.some(({ name }) => name === path.split('.')[0]);
  return wrongMask(
    exists
      ? `update_mask: ${quote(path, 200)} cannot be changed, only ${changeable.join(', ')}`
      : `update_mask: ${desc.name} has no field ${quote(path, 200)}`,
  );
}

function wrongMask(message: string) {
  return invalidArgument(message, { field: 'update_mask' });
}
