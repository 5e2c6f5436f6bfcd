/** The script that completes edubba's words in zsh, with their descriptions. */
import { type CommandWords, type OptionWords, TARGET_OPTIONS, valueOptions, type WordKind } from './completion-tree.ts';
import { cases, placePatterns, quotedForShell, subcommandCases } from './completion-shell.ts';

export function zshScript(tree: readonly CommandWords[]): string {
  const [program] = tree as readonly [CommandWords];
  const values = valueOptions(tree);
  const help: OptionWords = { flags: ['--help'], description: 'print help', value: undefined };
  const described = (options: readonly OptionWords[]): string =>
    describe(
      'option',
      options.map(({ flags, description }) => [flags[0]!, description]),
    );
  const optionsOf = (command: CommandWords): readonly OptionWords[] =>
    command === program ? program.options : [...command.options, ...program.options, help];
  return `#compdef edubba
# Completes the words of edubba in zsh. Made by: edubba completion zsh
_edubba() {
  local command='' word cur="$words[CURRENT]"
  local -i place=0 at=2
  local -a target
  while (( at < CURRENT )); do
    word="$words[at]"
    case "$word" in
      ${TARGET_OPTIONS.join('|')}) target+=("$word" "\${words[at+1]/#\\~/$HOME}"); (( at += 2 )); continue ;;
      --tls) target+=(--tls) ;;
      ${values.flatMap((option) => option.flags).join('|')}) (( at += 2 )); continue ;;
      -*) ;;
      *)
        case "$command:$word" in
${subcommandCases(tree, (path) => `command=${quotedForShell(path)}; place=0`, '          ')}
          *) (( place += 1 )) ;;
        esac ;;
    esac
    (( at += 1 ))
  done
  if (( at > CURRENT )); then
    case "$words[CURRENT-1]" in
${cases(
  values.map(({ flags, value }) => [flags.join('|'), answer(value!)]),
  '      ',
)}
    esac
    return
  fi
  if [[ "$cur" == -* ]]; then
    case "$command" in
${cases(
  tree.map((command) => [quotedForShell(command.path), described(optionsOf(command))]),
  '      ',
)}
    esac
    return
  fi
  case "$command:$place" in
${cases(tree.flatMap(branchesOf), '    ')}
  esac
}

if [[ "\${funcstack[1]}" = _edubba ]]; then _edubba "$@"; elif (( $+functions[compdef] )); then compdef _edubba edubba; fi
`;
}

function branchesOf(command: CommandWords): (readonly [string, string])[] {
  if (command.subcommands.length === 0)
    return placePatterns(command).map(({ pattern, kind }) => [pattern, answer(kind)] as const);
  const names = command.subcommands.map(({ name, description }): [string, string] => [name, description]);
  return [[quotedForShell(`${command.path}:0`), describe('command', names)]];
}

/** A list with a description of each, which zsh separates by a colon. */
function describe(what: string, items: readonly (readonly [string, string])[]): string {
  const words = items.map(([name, description]) => quotedForShell(`${name.replaceAll(':', '\\:')}:${description}`));
  return `local -a items=(${words.join(' ')}); _describe ${what} items`;
}

function answer(word: WordKind): string {
  switch (word.kind) {
    case 'choices':
      return `compadd -- ${word.choices.map(quotedForShell).join(' ')}`;
    case 'names':
      return `compadd -S '' -- ${word.choices.map(quotedForShell).join(' ')}`;
    case 'table':
      return `compadd -- \${(f)"$("\${words[1]/#\\~/$HOME}" "\${target[@]}" ls 2>/dev/null)"}`;
    case 'file':
      return '_files';
    case 'directory':
      return '_files -/';
    case 'text':
      return ':';
  }
}
