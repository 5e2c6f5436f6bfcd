/**
 * `edubba completion bash|zsh|fish`: prints a script that completes words in a shell, made from the commands
 * themselves.
 */
import { Argument, type Command } from 'commander';
import { bashScript } from './completion-bash.ts';
import { fishScript } from './completion-fish.ts';
import { type CommandWords, completionTree } from './completion-tree.ts';
import { zshScript } from './completion-zsh.ts';
import type { Terminal } from '../output/terminal.ts';

const SCRIPTS: Readonly<Record<string, (tree: readonly CommandWords[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

const MORE = `
The script completes commands, options, names of arguments, paths, and names of tables, for which it calls
edubba ls with the --dir or --address that the line has.

In each shell, now:
  bash   source <(edubba completion bash)
  zsh    source <(edubba completion zsh)
  fish   edubba completion fish | source

For every shell to come:
  bash   edubba completion bash > ~/.local/share/bash-completion/completions/edubba
  zsh    edubba completion zsh > DIRECTORY/_edubba, in a directory of $fpath
  fish   edubba completion fish > ~/.config/fish/completions/edubba.fish`;

export function addCompletionCommand(program: Command, terminal: Terminal): void {
  program
    .command('completion')
    .description('print a script that completes words in a shell')
    .addArgument(new Argument('<shell>', 'which shell').choices(Object.keys(SCRIPTS)))
    .addHelpText('after', MORE)
    .action((shell: string) => terminal.print(SCRIPTS[shell]!(completionTree(program))));
}
