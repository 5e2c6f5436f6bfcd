/**
 * `edubba token add|remove|list`: the file of tokens that `edubba serve --tokens` reads. The file has hashes alone: a
 * token is shown once.
 */
import type { Command } from 'commander';
import { addToken, readTokens, removeTokens, type TokenEntry, writeToken } from '../../auth/index.ts';
import type { Terminal } from '../output/terminal.ts';

const MORE = `
A server with --tokens FILE serves only calls with the header "authorization: Bearer TOKEN", and knows each
caller by its NAME. It reads the file again within seconds of a change. A name may have several tokens: add the
new one, hand it out, then remove the old one by its ID. With --json tokens are listed as JSON.

Examples:
  edubba token add tokens.txt crawler --out crawler.token
  edubba serve --tokens tokens.txt
  edubba --address 127.0.0.1:8086 --token-file crawler.token ls
  edubba token list tokens.txt
  edubba token remove tokens.txt crawler`;

export function addTokenCommand(program: Command, terminal: Terminal): void {
  const token = program
    .command('token')
    .description('the bearer tokens that a server takes')
    .addHelpText('after', MORE);
  const show = async (entries: readonly TokenEntry[], json: boolean): Promise<void> => {
    for (const { id, principal, added } of entries) {
      await terminal.print(
        json ? `${JSON.stringify({ id, name: principal, added })}\n` : `${id}  ${added}  ${principal}\n`,
      );
    }
  };
  const wantsJson = (command: Command): boolean => command.optsWithGlobals<{ json?: boolean }>().json === true;
  token
    .command('add <file> <name>')
    .description('make a token for a name, put its hash into the file (created if missing) and print the token')
    .option('--out <file>', 'write the token into this new file, which only its owner may read, instead of printing it')
    .action(async (file: string, name: string, { out }: { readonly out?: string }) => {
      const added = `${new Date().toISOString().slice(0, 19)}Z`;
      const add = (): Promise<string> => addToken(file, name, added);
      if (out === undefined) await terminal.print(`${await add()}\n`);
      else await writeToken(out, add);
    });
  token
    .command('remove <file> <id-or-name>')
    .description('take out one token by its id, or all of a name')
    .action(async (file: string, which: string, _own: unknown, command: Command) =>
      show(await removeTokens(file, which), wantsJson(command)),
    );
  token
    .command('list <file>')
    .description('print id, time and name of each token')
    .action(async (file: string, _own: unknown, command: Command) =>
      show((await readTokens(file)).entries, wantsJson(command)),
    );
}
