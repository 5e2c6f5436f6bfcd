/** Commands on the column families of a table, with cbt's names and arguments. */
import type { Command } from 'commander';
import { FAMILY_HELP, familyArgument, familySchema, settableType } from '../arguments/family-argument.ts';
import { parseGcPolicy } from '../arguments/gc-policy.ts';
import { parseGroups } from '../arguments/group-arguments.ts';
import { Session } from './target.ts';
import type { Terminal } from '../output/terminal.ts';
import { tableArgument } from '../arguments/words-argument.ts';
import { UsageError } from '../output/usage-error.ts';

const CREATE_FAMILY = `
Without a policy all versions are kept.
${FAMILY_HELP}

Examples:
  edubba createfamily web "anchor:maxage=30d and maxversions=2"
  edubba createfamily web hits:never:intsum`;

const SET_POLICY = `${FAMILY_HELP.slice(0, FAMILY_HELP.indexOf('\n\n  TYPE'))}

Examples:
  edubba setgcpolicy web anchor maxversions=1
  edubba setgcpolicy web contents maxage=10d or maxversions=3`;

const SET_TYPE = `
The type is kept and given back. It does not change what is read or written.

Example: edubba setvaluetype web language stringutf8bytes`;

const SET_GROUPS = `
Families of a locality group are stored together, apart from those of other groups, and a read touches only
the groups it needs. Families that no group names are in the group "default". The groups given replace all
there were. Compactions bring the files over. This works on a directory only (--dir).

  GROUP=FAMILY,…        the families of the group; default= may name none
  :blocksize=BYTES      size at which a block is closed (default: 65536)
  :compression=KIND     none, lz4 (the default), zstd, zstd-dict or two-pass; zstd/9 sets the level
  :bloom=KIND           none, row (the default) or row-column
  :inmemory=true        SSTables are kept in memory once they were read

Examples:
  edubba --dir ./data setgroups web meta=language,checksum:inmemory=true default=:compression=zstd-dict
  edubba --dir ./data setgroups web default=          all families in the group default`;

export function addFamilyCommands(program: Command, terminal: Terminal): void {
  program
    .command('createfamily')
    .description('add a column family')
    .addArgument(tableArgument())
    .argument('<family>', 'FAMILY, FAMILY:POLICY or FAMILY:POLICY:TYPE')
    .addHelpText('after', CREATE_FAMILY)
    .action((table: string, family: string, _: unknown, command: Command) => {
      const schema = familySchema(familyArgument(family), 'never');
      return new Session(command, terminal).changeFamilies(table, [{ kind: 'create', family: schema }]);
    });
  program
    .command('deletefamily')
    .description('delete a column family and everything in it')
    .addArgument(tableArgument())
    .argument('<family>', 'the family')
    .action((table: string, name: string, _: unknown, command: Command) =>
      new Session(command, terminal).withTable(table, (found) => found.deleteFamily(name)),
    );
  program
    .command('setgcpolicy')
    .description('replace the garbage-collection policy of a family')
    .addArgument(tableArgument())
    .argument('<family>', 'the family')
    .argument('<policy...>', 'the policy, in one word or several')
    .addHelpText('after', SET_POLICY)
    .action((table: string, family: string, policy: string[], _: unknown, command: Command) => {
      const rule = parseGcPolicy(policy.join(' '));
      return new Session(command, terminal).withTable(table, (found) => found.setGcRule(family, rule ?? 'never'));
    });
  program
    .command('setvaluetype')
    .description('set the type of the values of a family')
    .addArgument(tableArgument())
    .argument('<family>', 'the family')
    .argument('<type>', 'stringutf8bytes')
    .addHelpText('after', SET_TYPE)
    .action((table: string, name: string, type: string, _: unknown, command: Command) => {
      const family = { name, valueType: settableType(type) };
      return new Session(command, terminal).changeFamilies(table, [{ kind: 'update', family, fields: ['valueType'] }]);
    });
  program
    .command('setgroups')
    .description('replace the locality groups of a table')
    .addArgument(tableArgument())
    .argument('[groups...]', 'GROUP=FAMILY,…[:OPTION=VALUE]…')
    .addHelpText('after', SET_GROUPS)
    .action((table: string, words: string[], _: unknown, command: Command) => {
      if (words.length === 0)
        throw new UsageError('give at least one group; default= puts every family into the group default');
      const groups = parseGroups(words);
      return new Session(command, terminal).withTable(table, (found) => found.setGroups(groups));
    });
}
