/** Arguments and options with information for completions: names of cbt's `name=value` words, choices, tables. */
import { Argument, Option } from 'commander';

export class WordsArgument extends Argument {
  readonly names: readonly string[];
  /** Words without a value. */
  readonly flags: readonly string[];

  constructor(names: readonly string[], description: string, flags: readonly string[] = []) {
    super(names.length === 0 ? '[flag...]' : '[name=value...]', description);
    this.names = names;
    this.flags = flags;
  }
}

/** An option whose parser checks its value against `words`. */
export class WordsOption extends Option {
  readonly words: readonly string[];

  constructor(flags: string, description: string, words: readonly string[]) {
    super(flags, description);
    this.words = words;
  }
}

export function choicesOf(option: Option): readonly string[] | undefined {
  return option.argChoices ?? (option instanceof WordsOption ? option.words : undefined);
}

/** The table that a command works on. */
export function tableArgument(): Argument {
  return new Argument('<table>', 'its id, or its full name: projects/P/instances/I/tables/T');
}
