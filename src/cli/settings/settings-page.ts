/**
 * docs/SETTINGS.md, from the table of settings. `node --import tsx scripts/settings.mjs --write` writes it, `npm run
 * check` compares it.
 */
import { boundsText, DATABASE_SETTINGS, defaultText, type Setting } from '../../boot/index.ts';
import { flagOf, keyOf, SERVER_SETTINGS, type SettingName, settingGroups, variableOf } from './server-settings.ts';

const INTRODUCTION = `# Settings

<!-- Made from src/cli/settings/server-settings.ts by: node --import tsx scripts/settings.mjs --write -->

Every setting of \`edubba serve\` can be given in three ways. The first of these wins:

1. a flag: \`--memtable-bytes 256MiB\`
2. an environment variable: \`EDUBBA_MEMTABLE_BYTES=256MiB\`
3. a key of the settings file: \`memtable-bytes = "256MiB"\`

Other settings have their defaults.
\`edubba settings\` takes the same flags, variables and file, starts nothing, and prints the value and
the source of each setting.
Its output is a settings file with defaults as comments: a file to begin with.
\`edubba settings --json\` prints the same for programs.

## Values

| kind | written |
|---|---|
| size | a number and B, KiB, MiB, GiB or TiB: \`64MiB\`, \`1.5GiB\`. Without a unit: bytes |
| duration | a number and ms, s, m, h or d: \`30s\`, \`1.5h\`. Without a unit: milliseconds |
| boolean | \`true\` or \`false\`, also yes, no, on, off, 1, 0. As flags: \`--insecure-public\`, \`--no-insecure-public\` |

The start is refused if a value is out of its range, if a key or an \`EDUBBA_\` variable is unknown,
or if settings contradict each other.
The message lists all errors.
A value is checked even if another one overrides it.

## The settings file

\`--settings FILE\` or \`EDUBBA_SETTINGS=FILE\` names it; otherwise no file is read.
It is [TOML](https://toml.io): one key a line, comments after \`#\`, no tables.
A relative path in it starts from the file's own directory.

\`\`\`toml
dir = "/var/lib/edubba"
address = "127.0.0.1:8086"
tablet-servers = 4

# of 16 GiB
block-cache-bytes = "6GiB"
memtable-bytes = "512MiB"
\`\`\`

## The environment

An empty variable counts as not set.
\`EDUBBA_TOKEN\` belongs to the commands that talk to a server.
Kubernetes sets variables for a service whose name begins with \`edubba\` (\`EDUBBA_SERVICE_HOST\`,
\`EDUBBA_PORT_8086_TCP\` and the like); these are ignored.

Settings never contain secrets.
They name the files that do.

## How much memory

At its start the server prints how much memory its parts may take, and how much there is: that of
the machine, or of the container if it has a limit.
It warns if all parts together may take more.
It refuses a single size that is larger.
An idle server takes some 80 MiB in addition, and each of several tablet servers some 16 MiB.

## Node's own variables

\`UV_THREADPOOL_SIZE\` is the number of threads that read and write files for the whole process; its
default is 4.
\`NODE_OPTIONS=--max-old-space-size=MIB\` bounds the heap of JavaScript; most of the memory above
lies outside of it.

## In the library

\`open(directory, settings)\` takes the settings that have a name in the last column, as numbers of
bytes and milliseconds.
Their defaults are the same, except that \`blockCacheBytes\` is
${defaultText(DATABASE_SETTINGS.blockCacheBytes)} and \`indexBytes\` ${defaultText(DATABASE_SETTINGS.indexBytes)}, because a program has
other uses for its memory.
`;

export function settingsPage(): string {
  return [INTRODUCTION, ...[...settingGroups()].map(([group, names]) => section(group, names))].join('\n');
}

function section(group: string, names: readonly SettingName[]): string {
  const rows = names.map((name) => {
    const setting: Setting = SERVER_SETTINGS[name];
    const inLibrary = Object.hasOwn(DATABASE_SETTINGS, name) ? `\`${name}\`` : '';
    const value = [`default: ${defaultText(setting)}`, boundsText(setting)].filter((text) => text !== '').join('<br>');
    return `| \`${flagOf(name)}\`<br>\`${variableOf(name)}\`<br>\`${keyOf(name)}\` | ${setting.doc.replaceAll('|', '\\|')} | ${value} | ${inLibrary} |`;
  });
  return [
    `## ${group}`,
    '',
    '| flag, variable, key | what it does | value | in the library |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}
