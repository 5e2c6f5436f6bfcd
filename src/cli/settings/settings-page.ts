/** docs/SETTINGS.md, from the table of settings. `node --import tsx scripts/settings.mjs --write` writes it, `npm run check` compares it. */
import { boundsText, DATABASE_SETTINGS, defaultText, type Setting } from '../../boot/index.ts';
import { flagOf, keyOf, SERVE_SETTINGS, type SettingName, settingGroups, variableOf } from './serve-settings.ts';

const INTRODUCTION = `# Settings

<!-- Made from src/cli/settings/serve-settings.ts by: node --import tsx scripts/settings.mjs --write -->

Every setting of \`edubba serve\` can be given in three ways. The first that gives it wins:

1. a flag: \`--memtable-bytes 256MiB\`
2. an environment variable: \`EDUBBA_MEMTABLE_BYTES=256MiB\`
3. a key of the settings file: \`memtable-bytes = "256MiB"\`

What is given nowhere has its default. \`edubba settings\` takes the same flags, variables and file, starts nothing, and prints the value of each setting and where it
comes from; \`edubba settings --json\` prints it for programs. What it prints is a settings file in which defaults are comments: a file to begin with.

## Values

| kind | written |
|---|---|
| size | a number and B, KiB, MiB, GiB or TiB: \`64MiB\`, \`1.5GiB\`. Without a unit: bytes |
| duration | a number and ms, s, m, h or d: \`30s\`, \`1.5h\`. Without a unit: milliseconds |
| boolean | \`true\` or \`false\`, also yes, no, on, off, 1, 0. As flags: \`--insecure-public\`, \`--no-insecure-public\` |

A value out of its range, a key or an \`EDUBBA_\` variable that is not listed here, and settings that contradict each other are refused at the start. All that is
wrong is told at once. A value is checked even where another one overrides it.

## The settings file

\`--settings FILE\` or \`EDUBBA_SETTINGS=FILE\` names it; without them none is read. It is [TOML](https://toml.io): a key a line, comments after \`#\`, no tables.
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

An empty variable counts as not set. \`EDUBBA_TOKEN\` belongs to the commands that talk to a server. Variables that Kubernetes sets for a service whose name begins
with \`edubba\` (\`EDUBBA_SERVICE_HOST\`, \`EDUBBA_PORT_8086_TCP\` and the like) are ignored.

Secrets are never values of settings. Settings name the files that hold them.

## How much memory

At its start the server prints how much memory its parts may take, and how much there is: the machine's, or the container's where that has a limit. It warns when
all parts together may take more than there is, and refuses a single size that is larger. An idle server takes some 80 MiB besides, and each of several tablet
servers some 16 MiB.

## Node's own variables

\`UV_THREADPOOL_SIZE\` is the number of threads that read and write files for the whole process, 4 where it is not set. \`NODE_OPTIONS=--max-old-space-size=MIB\`
bounds the heap of JavaScript; most of the memory above lies outside of it.

## In the library

\`open(directory, settings)\` takes the settings that have a name in the last column, as numbers of bytes and milliseconds. Their defaults are the same but for
\`blockCacheBytes\`: ${defaultText(DATABASE_SETTINGS.blockCacheBytes)}, since a program has other uses for its memory.
`;

export function settingsPage(): string {
  return [INTRODUCTION, ...[...settingGroups()].map(([group, names]) => section(group, names))].join('\n');
}

function section(group: string, names: readonly SettingName[]): string {
  const rows = names.map((name) => {
    const setting: Setting = SERVE_SETTINGS[name];
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
