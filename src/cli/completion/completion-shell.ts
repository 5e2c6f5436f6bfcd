/** The common parts of the scripts for bash and zsh, both POSIX shells. */
import type { CommandWords, WordKind } from './completion-tree.ts';

/** One word, whatever it holds. */
export function quotedForShell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Branches of a case: pattern and commands. */
export function cases(branches: readonly (readonly [pattern: string, commands: string])[], indent: string): string {
  return branches.map(([pattern, commands]) => `${indent}${pattern}) ${commands} ;;`).join('\n');
}

/** Branches on "PATH:WORD" that go down to a subcommand. */
export function subcommandCases(
  tree: readonly CommandWords[],
  enter: (path: string) => string,
  indent: string,
): string {
  const branches = tree.flatMap(({ path, subcommands }) =>
    subcommands.map(({ name }): [string, string] => [
      quotedForShell(`${path}:${name}`),
      enter(path === '' ? name : `${path} ${name}`),
    ]),
  );
  return cases(branches, indent);
}

/** Patterns on "PATH:PLACE", and what may stand there. */
export function placePatterns({
  path,
  subcommands,
  places,
  repeats,
}: CommandWords): readonly { readonly pattern: string; readonly kind: WordKind }[] {
  if (subcommands.length > 0)
    return [
      { pattern: quotedForShell(`${path}:0`), kind: { kind: 'choices', choices: subcommands.map(({ name }) => name) } },
    ];
  return places.map((kind, place) => {
    const isLast = place === places.length - 1;
    // a repeated place is reached after the branches of those before it
    return { pattern: isLast && repeats ? `${quotedForShell(`${path}:`)}*` : quotedForShell(`${path}:${place}`), kind };
  });
}
