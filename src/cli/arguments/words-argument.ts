/** What completions know of arguments and options: names of cbt's `name=value` words, choices, tables. */
import { Argument, type Option } from 'commander';

export class WordsArgument extends Argument {
  readonly names: readonly string[];

  constructor(names: readonly string[], description: string) {
    super('[name=value...]', description);
    this.names = names;
  }
}

const CHOICES = new WeakMap<Option, readonly string[]>();

/** Says what the value of an option may be, where the option itself checks it. */
export function withChoices(option: Option, choices: readonly string[]): Option {
  CHOICES.set(option, choices);
  return option;
}

export function choicesOf(option: Option): readonly string[] | undefined {
  return option.argChoices ?? CHOICES.get(option);
}

/** The table that a command works on. */
export function tableArgument(): Argument {
  return new Argument('<table>', 'its id, or its full name: projects/P/instances/I/tables/T');
}
