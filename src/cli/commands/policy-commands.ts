/** Commands on rights: who has which role on an instance, a table, a column family, a view. */
import type { Command } from 'commander';
import { BigtableError, Code } from '../../base/index.ts';
import type { Policy, PolicyBinding } from '../../model/index.ts';
import { type PolicyStore, ROLES } from '../../service/index.ts';
import { jsonLine } from '../output/output.ts';
import type { Terminal } from '../output/terminal.ts';
import { Session } from './target.ts';

/** Others may change the policy that was read. */
const ATTEMPTS = 10;

const RESOURCE = 'a table, TABLE/columnFamilies/FAMILY, TABLE/authorizedViews/VIEW; without it the instance';

const MORE = `
Members are principals as a server knows them, token:NAME, jwt:SUBJECT or cert:NAME, or allUsers or
allAuthenticatedUsers. The roles:
${[...ROLES.keys()].map((role) => `  ${role.slice('roles/'.length)}\n`).join('')}

What has no policy, and is in nothing that has one, is everyone's. Servers enforce policies; a directory that is
opened by this command is not guarded, so that a policy that keeps everyone out can be mended.

Examples:
  edubba --dir data grant bigtable.admin token:ops
  edubba --dir data grant bigtable.reader token:crawler web
  edubba --dir data grant edubba.incrementer token:counter web/columnFamilies/hits
  edubba --dir data revoke bigtable.reader token:crawler web
  edubba --dir data getpolicy web`;

export function addPolicyCommands(program: Command, terminal: Terminal): void {
  program
    .command('getpolicy')
    .description('show who has which role on a resource')
    .argument('[resource]', RESOURCE)
    .addHelpText('after', MORE)
    .action(async (resource: string | undefined, _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      await session.withService(async ({ policies }, context) => {
        const { bindings } = await storeOf(policies).getPolicy(context, nameOf(session, resource));
        await terminal.print(session.json ? jsonLine({ bindings }) : linesOf(bindings));
      });
    });
  program
    .command('grant')
    .description('give a role to a member')
    .argument('<role>', 'its name, with or without roles/')
    .argument('<member>', 'who gets it')
    .argument('[resource]', RESOURCE)
    .addHelpText('after', MORE)
    .action((role: string, member: string, resource: string | undefined, _: unknown, command: Command) =>
      change(new Session(command, terminal), resource, (policy) => granted(policy, roleName(role), member)),
    );
  program
    .command('revoke')
    .description('take a role from a member')
    .argument('<role>', 'its name, with or without roles/')
    .argument('<member>', 'who has it')
    .argument('[resource]', RESOURCE)
    .addHelpText('after', MORE)
    .action((role: string, member: string, resource: string | undefined, _: unknown, command: Command) =>
      change(new Session(command, terminal), resource, (policy) => revoked(policy, roleName(role), member)),
    );
}

async function change(
  session: Session,
  resource: string | undefined,
  changed: (policy: Policy) => Policy,
): Promise<void> {
  const name = nameOf(session, resource);
  await session.withService(async ({ policies }, context) => {
    const store = storeOf(policies);
    for (let attempt = 1; ; attempt++) {
      const present = await store.getPolicy(context, name);
      try {
        await store.setPolicy(context, name, changed(present), present.version);
        return;
      } catch (error) {
        if (attempt === ATTEMPTS || !(error instanceof BigtableError) || error.code !== Code.ABORTED) throw error;
      }
    }
  });
}

function granted({ bindings }: Policy, role: string, member: string): Policy {
  const members = bindings.filter((binding) => binding.role === role).flatMap((binding) => binding.members);
  return {
    bindings: [
      ...bindings.filter((binding) => binding.role !== role),
      { role, members: [...new Set([...members, member])] },
    ],
  };
}

function revoked({ bindings }: Policy, role: string, member: string): Policy {
  if (!bindings.some((binding) => binding.role === role && binding.members.includes(member)))
    throw new BigtableError(Code.NOT_FOUND, `${member} does not have ${role} by this policy`);
  return {
    bindings: bindings
      .map((binding) =>
        binding.role === role ? { role, members: binding.members.filter((each) => each !== member) } : binding,
      )
      .filter(({ members }) => members.length > 0),
  };
}

function linesOf(bindings: readonly PolicyBinding[]): string {
  if (bindings.length === 0) return 'no policy\n';
  return bindings.flatMap(({ role, members }) => members.map((member) => `${role}  ${member}\n`)).join('');
}

function roleName(role: string): string {
  return role.startsWith('roles/') ? role : `roles/${role}`;
}

/** The full name of a resource of the instance; that of the instance without one. */
function nameOf(session: Session, resource: string | undefined): string {
  if (resource === undefined) return session.prefix.slice(0, -'/tables/'.length);
  return resource.startsWith('projects/') ? resource : `${session.prefix}${resource}`;
}

function storeOf(policies: PolicyStore | undefined): PolicyStore {
  if (policies === undefined) throw new BigtableError(Code.UNIMPLEMENTED, 'rights cannot be reached there');
  return policies;
}
