/**
 * The tree of commands as plain data, for scripts that complete words: read from the commands themselves, so that no
 * script drifts from them.
 */
import { type Argument, type Command, Help, type Option } from 'commander';
import { choicesOf, WordsArgument } from '../arguments/words-argument.ts';

/** The possible values of a word: a list, the name of a table, a path, or anything. */
export type WordKind =
  | { readonly kind: 'choices'; readonly choices: readonly string[] }
  /** `NAME=`, to be followed by a value, and words without one. */
  | { readonly kind: 'names'; readonly choices: readonly string[] }
  | { readonly kind: 'table' | 'file' | 'directory' | 'text' };

export interface OptionWords {
  /** --json, -V. */
  readonly flags: readonly string[];
  readonly description: string;
  /** Undefined if it takes no value. */
  readonly value: WordKind | undefined;
}

export interface CommandWords {
  /** '' for edubba itself, `ls`, `inspect check`. */
  readonly path: string;
  /** Sorted by name. */
  readonly subcommands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly OptionWords[];
  /** By position. The last one also applies to all that follow if it repeats. */
  readonly places: readonly WordKind[];
  readonly repeats: boolean;
}

/** Options that say where tables are: a script that lists tables hands them on. */
export const TARGET_OPTIONS: readonly string[] = [
  '--dir',
  '--address',
  '--project',
  '--instance',
  '--tls-ca',
  '--tls-cert',
  '--tls-key',
  '--token-file',
];

/** edubba itself first. */
export function completionTree(program: Command): readonly CommandWords[] {
  return wordsOf(program, '');
}

function wordsOf(command: Command, path: string): CommandWords[] {
  const help = new Help();
  const subcommands = help
    .visibleCommands(command)
    .map((sub) => ({ name: sub.name(), description: help.subcommandDescription(sub) }));
  const names = subcommands.map(({ name }) => name).filter((name) => name !== 'help');
  const own: CommandWords = {
    path,
    subcommands,
    options: help.visibleOptions(command).map(optionWords),
    places: command.registeredArguments.map(argumentKind),
    repeats: command.registeredArguments.at(-1)?.variadic === true,
  };
  const below = help.visibleCommands(command).flatMap((sub) => {
    const subPath = path === '' ? sub.name() : `${path} ${sub.name()}`;
    if (sub.name() !== 'help') return wordsOf(sub, subPath);
    return [
      {
        path: subPath,
        subcommands: [],
        options: [],
        places: [{ kind: 'choices', choices: names } as const],
        repeats: false,
      },
    ];
  });
  return [own, ...below];
}

function optionWords(option: Option): OptionWords {
  const { short, long, description, required, optional } = option;
  return {
    flags: [long, short].filter((flag) => flag !== undefined),
    description,
    value: required || optional ? kindOf(choicesOf(option), /<([^>]*)>/.exec(option.flags)?.[1] ?? '') : undefined,
  };
}

function argumentKind(argument: Argument): WordKind {
  if (argument instanceof WordsArgument)
    return { kind: 'names', choices: [...argument.names.map((name) => `${name}=`), ...argument.flags] };
  return kindOf(argument.argChoices, argument.name());
}

function kindOf(choices: readonly string[] | undefined, name: string): WordKind {
  if (choices !== undefined) return { kind: 'choices', choices };
  if (name === 'table' || name === 'directory') return { kind: name };
  return { kind: /^(file|path)\b/.test(name) ? 'file' : 'text' };
}

/** Every option that takes a value, with its flags, once. */
export function valueOptions(tree: readonly CommandWords[]): readonly OptionWords[] {
  const seen = new Set<string>();
  return tree
    .flatMap(({ options }) => options)
    .filter(({ flags, value }) => {
      const key = flags.join();
      if (value === undefined || seen.has(key)) return false;
      seen.add(key);
      return true;
    });
}
