/** The bindings of a policy in a document: of a resource, or of what a backup is of. */
import type { PolicyBinding } from '../model/index.ts';
import type { PlainObject } from './plain-json.ts';

export function readBindings(object: PlainObject): PolicyBinding[] {
  return object.objects('bindings').map((each) => ({ role: each.text('role'), members: each.texts('members') }));
}
