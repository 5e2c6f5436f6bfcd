/**
 * The command lines of the scripts behind npm run: `--help`, which prints a script's opening comment, and options, of
 * which those that a script does not know are refused.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/**
 * Prints the opening comment of the script at `url` and ends the process, where the first argument asks for that.
 *
 * @param {string} url
 */
export function helpIfAsked(url) {
  if (process.argv[2] !== '--help' && process.argv[2] !== '-h') return;
  const [, comment = ''] = /^\/\*\*\n(.*?)\n \*\//s.exec(readFileSync(fileURLToPath(url), 'utf8')) ?? [];
  console.log(comment.replace(/^ \* ?/gm, ''));
  process.exit(0);
}

/**
 * The arguments as `parseArgs` reads them. Ends the process with status 2 where it refuses them.
 *
 * @template {import('node:util').ParseArgsConfig} T
 * @param {T} config
 * @returns {ReturnType<typeof parseArgs<T>>}
 */
export function argumentsOf(config) {
  try {
    return parseArgs(config);
  } catch (error) {
    console.log(`${error.message} --help says which there are.`);
    process.exit(2);
  }
}
