/** The checks of policies that are the same for all doors. */
import { type BigtableError, invalidArgument, quote } from '../base/index.ts';
import type { Policy } from '../model/index.ts';
import { ROLES } from './roles.ts';

/** As in the cloud. */
const MAX_MEMBERS = 1500;
const EVERYONE = ['allUsers', 'allAuthenticatedUsers'];
/** A kind, and what it names: visible characters, as a principal has them. */
const MEMBER = /^[a-zA-Z]{1,30}:[^\p{C}]{1,4096}$/u;

/** INVALID_ARGUMENT for unknown roles, members of a wrong form, and too many of them. */
export function checkPolicy({ bindings }: Policy): void {
  let members = 0;
  for (const binding of bindings) {
    if (!ROLES.has(binding.role))
      throw wrong(`role ${quote(binding.role, 200)} is unknown: there are ${[...ROLES.keys()].join(', ')}`);
    if (binding.members.length === 0) throw wrong(`role ${binding.role} has no members: leave it out`);
    members += binding.members.length;
    if (members > MAX_MEMBERS) throw wrong(`a policy may have ${MAX_MEMBERS} members`);
    for (const member of binding.members) checkMember(member);
  }
}

/** INVALID_ARGUMENT for a text of another form than those of principals and of everyone. */
export function checkMember(member: string): void {
  if (EVERYONE.includes(member) || MEMBER.test(member)) return;
  throw wrong(
    `member ${quote(member, 200)} is neither ${EVERYONE.join(' nor ')}, nor a principal such as token:NAME, jwt:SUBJECT or cert:NAME`,
  );
}

function wrong(message: string): BigtableError {
  return invalidArgument(message, { field: 'policy' });
}
