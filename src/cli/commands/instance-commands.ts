/** Commands on instances, their clusters and their app profiles, with cbt's names and arguments. */
import type { Command } from 'commander';
import { notFound } from '../../base/index.ts';
import type {
  AppProfile,
  Cluster,
  Database,
  Instance,
  IsolationOptions,
  RoutingOptions,
} from '../../embedded/index.ts';
import { namedArguments, positiveNumber, truth } from '../arguments/arguments.ts';
import { WordsArgument } from '../arguments/words-argument.ts';
import { jsonLine, tabbed } from '../output/output.ts';
import type { Terminal } from '../output/terminal.ts';
import { UsageError } from '../output/usage-error.ts';
import { Session } from './target.ts';

const INSTANCES = `
An instance groups tables. One that no one has created comes with its first table. All clusters of all instances
are the servers of this one database: zone, nodes and storage are kept and shown, and act upon nothing.

Examples:
  edubba --dir data listinstances
  edubba --address 127.0.0.1:8086 createinstance games "All games" games-c1 europe-west1-b 3 SSD
  edubba --address 127.0.0.1:8086 deleteinstance games`;

const DELETE_INSTANCE = `
All of its tables are deleted with it, and cannot be restored. The default instance cannot be deleted, nor one
with a table that is protected against deletion, or with a backup.`;

const CLUSTERS = `
The instance is that of --instance. All clusters of all instances are the servers of this one database: zone, nodes
and storage are kept and shown, and act upon nothing.

Examples:
  edubba --address 127.0.0.1:8086 --instance games createcluster games-c2 europe-west1-c 3 SSD
  edubba --address 127.0.0.1:8086 --instance games updatecluster games-c2 num-nodes=5
  edubba --address 127.0.0.1:8086 --instance games listclusters`;

const PROFILE_NAMES = ['route-to', 'restrict-to', 'priority'] as const;
const PROFILE_FLAGS = ['route-any', 'transactional-writes', 'row-affinity', 'data-boost', 'force'] as const;
const DELETE_FLAGS = ['force'] as const;
const UPDATE_NUMBERS = ['num-nodes'] as const;
const PRIORITIES = ['low', 'medium', 'high'] as const;
const STORAGES = ['SSD', 'HDD'] as const;

const PROFILE_WORDS = `
  route-any              calls go to any cluster; CheckAndMutateRow and ReadModifyWriteRow are refused
  restrict-to=CLUSTER,…  with route-any: to any of these
  route-to=CLUSTER       calls go to one cluster
  transactional-writes   with route-to: CheckAndMutateRow and ReadModifyWriteRow are allowed
  row-affinity           with route-any: calls on a row prefer one cluster
  priority=PRIORITY      of the calls: high (the default), medium, low
  data-boost             with route-to, without transactional-writes: only reads are allowed
  force                  is taken as in cbt, and changes nothing`;

const CREATE_PROFILE = `${PROFILE_WORDS}

Examples:
  edubba --address 127.0.0.1:8086 createappprofile games any "To any cluster" route-any
  edubba --address 127.0.0.1:8086 createappprofile games one "Counts" route-to=games-c1 transactional-writes
  edubba --address 127.0.0.1:8086 createappprofile games batch "At night" route-any priority=low`;

const UPDATE_PROFILE = `${PROFILE_WORDS}

The description is replaced. Where there is no route the routing stays, and so do priority and data-boost.

Example:
  edubba --address 127.0.0.1:8086 updateappprofile games batch "By day" route-to=games-c2 priority=medium`;

const DELETE_PROFILE = `
The app profile "default" is that of all calls that name none, which fail without it: only with the word "force"
is it deleted.

Examples:
  edubba --address 127.0.0.1:8086 deleteappprofile games batch
  edubba --address 127.0.0.1:8086 deleteappprofile games default force`;

const ID_OR_NAME = 'its id, or its full name: projects/P/instances/I';

export function addInstanceCommands(program: Command, terminal: Terminal): void {
  addCommandsOnInstances(program, terminal);
  addCommandsOnClusters(program, terminal);
  addShowingCommandsOnProfiles(program, terminal);
  addChangingCommandsOnProfiles(program, terminal);
}

function addCommandsOnInstances(program: Command, terminal: Terminal): void {
  program
    .command('listinstances')
    .description('list the instances of a project')
    .addHelpText('after', INSTANCES)
    .action((_: unknown, command: Command) => listInstances(new Session(command, terminal)));
  program
    .command('createinstance')
    .description('create an instance with a cluster')
    .argument('<instance>', ID_OR_NAME)
    .argument('<display-name>', 'its name for people')
    .argument('<cluster>', 'the id of its first cluster')
    .argument('<zone>', 'the zone of that cluster')
    .argument('<nodes>', 'the number of its nodes')
    .argument('<storage>', STORAGES.join(' or '))
    .addHelpText('after', INSTANCES)
    .action(
      (
        id: string,
        displayName: string,
        cluster: string,
        zone: string,
        nodes: string,
        storage: string,
        _: unknown,
        command: Command,
      ) => {
        const session = new Session(command, terminal);
        const clusters = { [cluster]: figures(zone, nodes, storage) };
        return session.withDatabase(async (database) => {
          const made = await database.createInstance(session.instanceName(id), { displayName, clusters });
          if (session.json) await terminal.print(jsonLine(withFullName(session, made)));
        });
      },
    );
  program
    .command('deleteinstance')
    .description('delete an instance and all of its tables')
    .argument('<instance>', ID_OR_NAME)
    .addHelpText('after', DELETE_INSTANCE)
    .action((id: string, _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      return session.withDatabase((database) => database.deleteInstance(session.instanceName(id)));
    });
}

function addCommandsOnClusters(program: Command, terminal: Terminal): void {
  program
    .command('listclusters')
    .description('list the clusters of an instance')
    .addHelpText('after', CLUSTERS)
    .action((_: unknown, command: Command) => listClusters(new Session(command, terminal)));
  program
    .command('createcluster')
    .description('add a cluster to an instance')
    .argument('<cluster>', 'its id')
    .argument('<zone>', 'its zone')
    .argument('<nodes>', 'the number of its nodes')
    .argument('<storage>', STORAGES.join(' or '))
    .addHelpText('after', CLUSTERS)
    .action((id: string, zone: string, nodes: string, storage: string, _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      const wanted = figures(zone, nodes, storage);
      return printingJson(session, (database) => database.createCluster(session.instanceName(), id, wanted));
    });
  program
    .command('updatecluster')
    .description('change the number of nodes of a cluster')
    .argument('<cluster>', 'its id')
    .addArgument(new WordsArgument(UPDATE_NUMBERS, 'num-nodes=N'))
    .addHelpText('after', CLUSTERS)
    .action((id: string, words: string[], _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      const { 'num-nodes': number } = namedArguments(words, UPDATE_NUMBERS);
      if (number === undefined) throw new UsageError('updatecluster needs num-nodes=N');
      const nodes = positiveNumber(number, 'num-nodes');
      return printingJson(session, (database) => database.updateCluster(session.instanceName(), id, { nodes }));
    });
  program
    .command('deletecluster')
    .description('delete a cluster of an instance')
    .argument('<cluster>', 'its id')
    .addHelpText('after', CLUSTERS)
    .action((id: string, _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      return session.withDatabase((database) => database.deleteCluster(session.instanceName(), id));
    });
}

function addShowingCommandsOnProfiles(program: Command, terminal: Terminal): void {
  program
    .command('listappprofile')
    .description('list the app profiles of an instance')
    .argument('<instance>', ID_OR_NAME)
    .action((instance: string, _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      return session.withDatabase(async (database) => {
        const { appProfiles } = await database.getInstance(session.instanceName(instance));
        await terminal.print(session.json ? jsonLine({ appProfiles }) : tabbed(profileRows(appProfiles)));
      });
    });
  program
    .command('getappprofile')
    .description('show an app profile')
    .argument('<instance>', ID_OR_NAME)
    .argument('<profile>', 'the id of the app profile')
    .action((instance: string, id: string, _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      return session.withDatabase(async (database) => {
        const { name, appProfiles } = await database.getInstance(session.instanceName(instance));
        const found = appProfiles.find((profile) => profile.id === id);
        if (found === undefined) throw notFound(`app profile ${id} of instance ${name} does not exist`);
        await terminal.print(session.json ? jsonLine(found) : tabbed(fieldsOf(found)));
      });
    });
}

function addChangingCommandsOnProfiles(program: Command, terminal: Terminal): void {
  const words = (): WordsArgument => new WordsArgument(PROFILE_NAMES, 'where calls go, see below', PROFILE_FLAGS);
  program
    .command('createappprofile')
    .description('create an app profile of an instance')
    .argument('<instance>', ID_OR_NAME)
    .argument('<profile>', 'the id of the app profile')
    .argument('<description>', 'what it is for')
    .addArgument(words())
    .addHelpText('after', CREATE_PROFILE)
    .action((instance: string, id: string, description: string, given: string[], _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      const { routing, isolation } = profileArguments(given);
      if (routing === undefined) throw new UsageError('createappprofile needs route-any or route-to=CLUSTER');
      const options = { description, routing, isolation };
      return printingJson(session, (database) =>
        database.createAppProfile(session.instanceName(instance), id, options),
      );
    });
  program
    .command('updateappprofile')
    .description('change an app profile of an instance')
    .argument('<instance>', ID_OR_NAME)
    .argument('<profile>', 'the id of the app profile')
    .argument('<description>', 'what it is for')
    .addArgument(words())
    .addHelpText('after', UPDATE_PROFILE)
    .action((instance: string, id: string, description: string, given: string[], _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      const update = { description, ...profileArguments(given) };
      return printingJson(session, (database) => database.updateAppProfile(session.instanceName(instance), id, update));
    });
  program
    .command('deleteappprofile')
    .description('delete an app profile of an instance')
    .argument('<instance>', ID_OR_NAME)
    .argument('<profile>', 'the id of the app profile')
    .addArgument(new WordsArgument([], 'force: also the app profile "default"', DELETE_FLAGS))
    .addHelpText('after', DELETE_PROFILE)
    .action((instance: string, id: string, given: string[], _: unknown, command: Command) => {
      const session = new Session(command, terminal);
      const { force } = namedArguments(withFlags(given, DELETE_FLAGS), DELETE_FLAGS);
      const ignoreWarnings = truth(force, 'force');
      return session.withDatabase((database) =>
        database.deleteAppProfile(session.instanceName(instance), id, { ignoreWarnings }),
      );
    });
}

/** Prints what is answered where the command has --json. */
function printingJson<T>(session: Session, work: (database: Database) => Promise<T>): Promise<void> {
  return session.withDatabase(async (database) => {
    const answer = await work(database);
    if (session.json) await session.terminal.print(jsonLine(answer));
  });
}

async function listInstances(session: Session): Promise<void> {
  const { project } = session.options;
  await session.withDatabase(async (database) => {
    const instances = (await database.listInstances({ project })).map((each) => withFullName(session, each));
    if (session.json) return session.terminal.print(jsonLine({ instances }));
    const rows = instances.map(({ name, displayName }) => [name.slice(name.lastIndexOf('/') + 1), displayName]);
    return session.terminal.print(tabbed([['Instance Name', 'Info'], ['-------------', '----'], ...rows]));
  });
}

async function listClusters(session: Session): Promise<void> {
  await session.withDatabase(async (database) => {
    const { clusters } = await database.getInstance(session.instanceName());
    if (session.json) return session.terminal.print(jsonLine({ clusters }));
    const heads = [
      ['Cluster Name', 'Zone', 'State'],
      ['------------', '----', '----'],
    ];
    const rows = clusters.map(({ id, zone, nodes }) => [id, zone, `READY (${nodes} serve nodes)`]);
    return session.terminal.print(tabbed([...heads, ...rows]));
  });
}

/** The same at every target: a database names the instances of its own project by their ids. */
function withFullName(session: Session, instance: Instance): Instance {
  return { ...instance, name: session.instanceName(instance.name) };
}

function figures(zone: string, nodes: string, storage: string): Pick<Cluster, 'zone' | 'nodes' | 'storage'> {
  const kind = storage.toLowerCase();
  if (kind !== 'ssd' && kind !== 'hdd')
    throw new UsageError(`the storage of a cluster must be ${STORAGES.join(' or ')}, not ${JSON.stringify(storage)}`);
  return { zone, nodes: positiveNumber(nodes, 'the number of nodes'), storage: kind };
}

/** Where calls go, and how; undefined where the words say nothing. */
function profileArguments(words: readonly string[]): {
  readonly routing: RoutingOptions | undefined;
  readonly isolation: IsolationOptions | undefined;
} {
  const given = namedArguments(withFlags(words, PROFILE_FLAGS), [...PROFILE_NAMES, ...PROFILE_FLAGS]);
  truth(given.force, 'force');
  return { routing: routingOf(given), isolation: isolationOf(given) };
}

type ProfileWords = Partial<Record<(typeof PROFILE_NAMES)[number] | (typeof PROFILE_FLAGS)[number], string>>;

function routingOf(given: ProfileWords): RoutingOptions | undefined {
  const { 'route-to': cluster, 'restrict-to': clusters } = given;
  const isAny = truth(given['route-any'], 'route-any');
  const allowsTransactions = truth(given['transactional-writes'], 'transactional-writes');
  const hasRowAffinity = truth(given['row-affinity'], 'row-affinity');
  if (isAny && cluster !== undefined) throw new UsageError('give either route-any or route-to=CLUSTER');
  if (allowsTransactions && cluster === undefined)
    throw new UsageError('transactional-writes needs route-to=CLUSTER: transactions are allowed at one cluster alone');
  if ((hasRowAffinity || clusters !== undefined) && !isAny)
    throw new UsageError(`${hasRowAffinity ? 'row-affinity' : 'restrict-to='} needs route-any`);
  if (cluster !== undefined) return { kind: 'single', cluster, allowsTransactions };
  return isAny ? { kind: 'any', clusters: clusters?.split(',') ?? [], hasRowAffinity } : undefined;
}

function isolationOf(given: ProfileWords): IsolationOptions | undefined {
  const { priority } = given;
  if (truth(given['data-boost'], 'data-boost')) {
    if (priority !== undefined) throw new UsageError('give either priority= or data-boost');
    return { kind: 'data-boost' };
  }
  if (priority === undefined) return undefined;
  const known = PRIORITIES.find((each) => each === priority);
  if (known === undefined)
    throw new UsageError(`priority must be one of ${PRIORITIES.join(', ')}, not ${JSON.stringify(priority)}`);
  return { kind: 'standard', priority: known };
}

/** A flag is a word of its own, or cbt's `flag=true`. */
function withFlags(words: readonly string[], flags: readonly string[]): string[] {
  return words.map((word) => (flags.includes(word) ? `${word}=true` : word));
}

function profileRows(profiles: readonly AppProfile[]): string[][] {
  return [
    ['AppProfile', 'Profile Description', 'Profile Routing Policy', 'Priority'],
    ['----------', '-------------------', '----------------------', '--------'],
    ...profiles.map((profile) => [profile.id, profile.description, routeOf(profile), priorityOf(profile)]),
  ];
}

/** A field in a line. */
function fieldsOf(profile: AppProfile): string[][] {
  return [
    ['Name', profile.id],
    ['Description', profile.description],
    ['Routing', routeOf(profile)],
    ['Priority', priorityOf(profile)],
  ];
}

/** In the words of createappprofile. */
function routeOf({ routing }: AppProfile): string {
  if (routing.kind === 'single')
    return `route-to=${routing.cluster}${routing.allowsTransactions ? ' transactional-writes' : ''}`;
  const { clusters, hasRowAffinity } = routing;
  const restricted = clusters.length === 0 ? '' : ` restrict-to=${clusters.join(',')}`;
  return `route-any${restricted}${hasRowAffinity ? ' row-affinity' : ''}`;
}

function priorityOf({ isolation }: AppProfile): string {
  return isolation.kind === 'standard' ? isolation.priority : 'data-boost';
}
