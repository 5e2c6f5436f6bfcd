/** The script that completes edubba's words in fish, with their descriptions. */
import { type CommandWords, type OptionWords, TARGET_OPTIONS, valueOptions, type WordKind } from './completion-tree.ts';

export function fishScript(tree: readonly CommandWords[]): string {
  const values = valueOptions(tree)
    .flatMap(({ flags }) => flags)
    .filter((flag) => !TARGET_OPTIONS.includes(flag));
  const enter = tree.flatMap(({ path, subcommands }) =>
    subcommands.map(
      ({ name }) =>
        `        case ${quoted(`${path}:${name}`)}\n          set state ${quoted(path === '' ? name : `${path} ${name}`)}\n          set place 0`,
    ),
  );
  return `# Completes the words of edubba in fish. Made by: edubba completion fish
# Prints the command that the line has, how many words follow it, and the options that name the database.
function __edubba_line
  set -l tokens (commandline -opc)
  set -l state ''
  set -l place 0
  set -l target
  set -l at 2
  while test $at -le (count $tokens)
    set -l word $tokens[$at]
    switch $word
      case ${TARGET_OPTIONS.map(quoted).join(' ')}
        set at (math $at + 1)
        test $at -le (count $tokens); and set -a target $word $tokens[$at]
      case '--tls'
        set -a target $word
      case ${values.map(quoted).join(' ')}
        set at (math $at + 1)
      case '-*'
      case '*'
        switch "$state:$word"
${enter.join('\n')}
        case '*'
          set place (math $place + 1)
        end
    end
    set at (math $at + 1)
  end
  printf '%s\\n' $state $place $target
end

function __edubba_in -a path
  set -l line (__edubba_line)
  test "$line[1]" = "$path"
end

function __edubba_at -a path place
  set -l line (__edubba_line)
  test "$line[1]" = "$path" -a "$line[2]" = "$place"
end

function __edubba_from -a path place
  set -l line (__edubba_line)
  test "$line[1]" = "$path" -a "$line[2]" -ge "$place"
end

function __edubba_tables
  set -l tokens (commandline -opc)
  set -l line (__edubba_line)
  $tokens[1] $line[3..-1] ls 2>/dev/null
end

complete -c edubba -f
${tree.flatMap(linesOf).join('\n')}
`;
}

function linesOf({ path, subcommands, options, places, repeats }: CommandWords): string[] {
  const complete = (condition: string, rest: string): string =>
    `complete -c edubba${condition === '' ? '' : ` -n ${quoted(condition)}`} ${rest}`;
  return [
    ...subcommands.map(({ name, description }) =>
      complete(`__edubba_at ${quoted(path)} 0`, `-a ${quoted(name)} -d ${quoted(description)}`),
    ),
    // what edubba itself takes every command takes
    ...options.map((option) => complete(path === '' ? '' : `__edubba_in ${quoted(path)}`, optionWords(option))),
    ...places.flatMap((kind, place) => {
      const isRest = repeats && place === places.length - 1;
      const words = answer(kind);
      return words === ''
        ? []
        : [complete(`${isRest ? '__edubba_from' : '__edubba_at'} ${quoted(path)} ${place}`, words)];
    }),
  ];
}

function optionWords({ flags, description, value }: OptionWords): string {
  const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`)).join(' ');
  const words =
    value === undefined
      ? ''
      : ` ${value.kind === 'text' ? '-x' : value.kind === 'file' ? '-rF' : `-x ${answer(value)}`}`;
  return `${names} -d ${quoted(description)}${words}`;
}

/** '' if there is nothing to offer. */
function answer(word: WordKind): string {
  switch (word.kind) {
    case 'choices':
    case 'names':
      return `-a ${quoted(word.choices.join(' '))}`;
    case 'table':
      return "-a '(__edubba_tables)'";
    case 'file':
      return '-F';
    case 'directory':
      return "-a '(__fish_complete_directories)'";
    case 'text':
      return '';
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
