/** An argument that takes cbt's `name=value` words. It knows their names, for completions. */
import { Argument } from 'commander';

export class WordsArgument extends Argument {
  readonly names: readonly string[];

  constructor(names: readonly string[], description: string) {
    super('[name=value...]', description);
    this.names = names;
  }
}

/** The table that a command works on. */
export function tableArgument(): Argument {
  return new Argument('<table>', 'its id, or its full name: projects/P/instances/I/tables/T');
}
