/** The script that completes edubba's words in bash. It needs nothing but bash itself. */
import { type CommandWords, TARGET_OPTIONS, valueOptions, type WordKind } from './completion-tree.ts';
import { cases, placePatterns, quotedForShell, subcommandCases } from './completion-shell.ts';

export function bashScript(tree: readonly CommandWords[]): string {
  const [program] = tree as readonly [CommandWords];
  const values = valueOptions(tree);
  const flags = (command: CommandWords): string[] =>
    command.options.flatMap((option) => option.flags.filter((flag) => flag.startsWith('--')));
  const global = flags(program);
  return `# Completes the words of edubba in bash. Made by: edubba completion bash
_edubba() {
  # bash breaks words at = and :, so the line is split here
  local line="\${COMP_LINE:0:COMP_POINT}" words command='' place=0 word at=1 cur
  local -a target=()
  COMPREPLY=()
  read -ra words <<< "$line"
  case "$line" in *[[:space:]]) cur='' ;; *) cur="\${words[-1]}"; unset 'words[-1]' ;; esac
  while (( at < \${#words[@]} )); do
    word="\${words[at]}"
    case "$word" in
      ${TARGET_OPTIONS.join('|')}) target+=("$word" "\${words[at+1]/#\\~/$HOME}"); at=$((at + 2)); continue ;;
      --tls) target+=(--tls) ;;
      ${values.flatMap((option) => option.flags).join('|')}) at=$((at + 2)); continue ;;
      -*) ;;
      *)
        case "$command:$word" in
${subcommandCases(tree, (path) => `command=${quotedForShell(path)}; place=0`, '          ')}
          *) place=$((place + 1)) ;;
        esac ;;
    esac
    at=$((at + 1))
  done
  case "$cur" in --*=*) words+=("\${cur%%=*}"); cur="\${cur#*=}"; at=$((at + 2)) ;; esac
  if (( at > \${#words[@]} )); then
    case "\${words[-1]}" in
${cases(
  values.map(({ flags: names, value }) => [names.join('|'), answer(value!)]),
  '      ',
)}
    esac
    return
  fi
  case "$cur" in
    -*)
      case "$command" in
${cases(
  tree.map((command) => [
    quotedForShell(command.path),
    answer({ kind: 'choices', choices: [...new Set([...flags(command), ...global, '--help'])] }),
  ]),
  '        ',
)}
      esac
      return ;;
  esac
  case "$command:$place" in
${cases(
  tree.flatMap((command) =>
    placePatterns(command).map(({ pattern, kind }): [string, string] => [pattern, answer(kind)]),
  ),
  '    ',
)}
  esac
}

complete -F _edubba edubba
`;
}

/** Fills COMPREPLY with the words of that kind that begin as the current one does. */
function answer(word: WordKind): string {
  const reply = (generate: string): string => `mapfile -t COMPREPLY < <(compgen ${generate} -- "$cur")`;
  switch (word.kind) {
    case 'choices':
      return reply(`-W ${quotedForShell(word.choices.join(' '))}`);
    case 'names':
      return `${reply(`-W ${quotedForShell(word.choices.join(' '))}`)}; compopt -o nospace 2>/dev/null`;
    case 'table':
      return reply(`-W "$("\${words[0]/#\\~/$HOME}" "\${target[@]}" ls 2>/dev/null)"`);
    case 'file':
      return `${reply('-f')}; compopt -o filenames 2>/dev/null`;
    case 'directory':
      return `${reply('-d')}; compopt -o filenames 2>/dev/null`;
    case 'text':
      return ':';
  }
}
